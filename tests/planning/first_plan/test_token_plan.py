"""A first plan for networks that read texts as token ids."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from torch import Tensor, nn

from overheard.core.errors import PlanError
from overheard.data.datasets.custom import Own
from overheard.planning.apps.federated_app import FederatedApp
from overheard.planning.first_plan.request import FirstPlanRequest
from overheard.planning.first_plan.writing import FirstPlan, write_first_plan
from overheard.planning.recorded_facts import read_recorded_facts
from tests.planning.first_plan.test_first_plan import HERE, single_output

TOKENS = 6
IDS = np.random.default_rng(0).integers(1, TOKENS, (60, 4))


class Classifier(nn.Module):
    """Words of a text, averaged, and two classes."""

    def __init__(self, run_config: dict[str, int]) -> None:
        super().__init__()
        self.words = nn.Embedding(TOKENS, run_config["width"])
        self.head = nn.Linear(run_config["width"], 2)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits."""
        logits: Tensor = self.head(self.words(tokens).mean(1))
        return logits


class NextWord(nn.Module):
    """A language model by the word before."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(TOKENS, 3)
        self.head = nn.Linear(3, TOKENS)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits of each place."""
        logits: Tensor = self.head(self.words(tokens))
        return logits


def encode(text: str) -> list[int]:
    """Return a token for each word."""
    return [1 + len(word) % (TOKENS - 1) for word in text.split()]


def planned(folder: Path, network: str, outputs: int, **request: object) -> FirstPlan:
    """Return the first plan for a recording of a network of this module."""
    shapes = {"words.weight": (TOKENS, 3), "head.weight": (outputs, 3), "head.bias": (outputs,)}
    recording = read_recorded_facts(single_output(folder / "recording", shapes))
    reference = f"{__name__}:{network}"
    app = FederatedApp(
        (reference,),
        arguments={reference: (("width", 3),)},
        encoders=(f"{__name__}:encode",),
    )
    given = FirstPlanRequest(recording, app, **request)  # type: ignore[arg-type]
    return write_first_plan(given, HERE)


def test_a_network_with_an_embedding_reads_tokens(tmp_path: Path) -> None:
    plan = planned(tmp_path, "Classifier", 2).plan
    task = plan.data.source.load(None).task
    assert (task.vocabulary, task.classes) == (TOKENS, 2)


def test_whole_numbers_are_token_ids_of_such_a_network(tmp_path: Path) -> None:
    np.savez(tmp_path / "spare.npz", x=IDS, y=np.arange(60) % 2)
    written = planned(tmp_path, "Classifier", 2, data=str(tmp_path / "spare.npz"))
    assert isinstance(written.plan.data.source, Own)
    assert written.plan.data.source.token_ids == TOKENS
    assert {"embedding_rows", "mean_softmax"} <= set(written.attacks)
    # What the builder takes from the configuration is in the plan.
    assert '["width", 3]' in written.text


def test_texts_of_a_table_need_the_encoder_of_the_app(tmp_path: Path) -> None:
    path = tmp_path / "spare.csv"
    texts = (" ".join("a" * word for word in row) for row in IDS.tolist())
    rows = [f"{text},{'xy'[number % 2]}" for number, text in enumerate(texts)]
    path.write_text("\n".join(["post,board", *rows]))
    with pytest.raises(PlanError) as refused:
        planned(tmp_path / "first", "Classifier", 2, data=str(path), label="board")
    mend = f"--text COLUMN --tokenizer {__name__}:encode"
    assert mend in str(refused.value)

    written = planned(
        tmp_path / "second",
        "Classifier",
        2,
        data=str(path),
        label="board",
        text="post",
        tokenizer=f"{__name__}:encode",
    )
    assert "embedding_rows" in written.attacks


def test_the_column_of_labels_is_that_of_lines_of_json_too(tmp_path: Path) -> None:
    path = tmp_path / "spare.jsonl"
    texts = (" ".join("a" * word for word in row) for row in IDS.tolist())
    rows = [{"post": text, "board": "xy"[place % 2]} for place, text in enumerate(texts)]
    path.write_text("\n".join(map(json.dumps, rows)))
    written = planned(
        tmp_path,
        "Classifier",
        2,
        data=str(path),
        label="board",
        text="post",
        tokenizer=f"{__name__}:encode",
    )
    assert written.plan.data.source.load(None).task.class_names == ("x", "y")


def test_a_language_model_has_no_label_shares(tmp_path: Path) -> None:
    np.savez(tmp_path / "spare.npz", x=IDS)
    written = planned(tmp_path, "NextWord", TOKENS, data=str(tmp_path / "spare.npz"))
    assert written.plan.training.recipe.loss == "next_token"
    assert written.plan.data.source.load(None).task.kind == "language_modeling"
    assert "embedding_rows" in written.attacks
    assert not {"decaf", "mean_softmax", "target_regression"} & set(written.attacks)
    assert any("Label shares are refused" in one for one in written.data)


class Frozen(NextWord):
    """A language model whose word vectors are not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.words.requires_grad_(False)


def test_a_language_model_with_frozen_words_is_asked_about_listed_texts(
    tmp_path: Path,
) -> None:
    shapes = {"head.weight": (TOKENS, 3), "head.bias": (TOKENS,)}
    recording = read_recorded_facts(single_output(tmp_path / "recording", shapes))
    np.savez(tmp_path / "spare.npz", x=IDS)
    request = FirstPlanRequest(
        recording, FederatedApp((f"{__name__}:Frozen",)), data=str(tmp_path / "spare.npz")
    )
    alone = write_first_plan(request, HERE)
    assert alone.attacks == ("shift",)
    assert "words.weight of LogitsNetwork is frozen" in alone.missing["embedding_rows"]
    assert "--candidates FILE" in alone.missing["loss_membership"]

    np.savez(tmp_path / "texts.npz", x=np.eye(4, dtype=int) + 1, member=[1, 1, 0, 0])
    listed = replace(request, candidates=str(tmp_path / "texts.npz"))
    written = write_first_plan(listed, HERE)
    assert written.attacks == ("loss_membership",)
