"""Apps as people write them lead from a recording to checked claims in two commands.

`tests/apps` has the apps. Each runs with five clients in a process of its own, and the commands
are those of docs/init.md, in the folder of the app.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

pytestmark = pytest.mark.deployment

ROOT = Path(__file__).parents[2]
OVERHEARD = (sys.executable, "-m", "overheard")

SPARE = {
    "bert_full": ("--data", "spare_tokenized"),
    "causal_lora": (
        *("--data", "spare.jsonl", "--text", "text", "--candidates", "records.jsonl"),
        *("--tokenizer", "causal_lora.task:get_tokenizer"),
    ),
    "fedbn": ("--data", "spare.npz"),
    "fedper": ("--data", "spare.npz"),
    "lstm_tokens": (
        *("--data", "spare.csv", "--label", "board", "--text", "text"),
        *("--tokenizer", "lstm_tokens.task:encode"),
    ),
    "multilabel": ("--data", "spare.npz", "--candidates", "records.npz"),
    "one_logit": ("--data", "spare.parquet", "--label", "default"),
    "regression": (
        *("--data", "spare.csv", "--label", "price", "--candidates", "records.csv"),
    ),
    "sklearn_logreg": ("--data", "spare.csv", "--label", "digit"),
    "vit_lora": ("--data", "spare"),
}
"""How each app's owner names examples that no client holds, and records to ask about."""

LISTED = frozenset({"causal_lora", "multilabel", "regression"})
"""Apps whose clients hold no classes, so that the list of records is all of the truth."""

NIGHTLY = frozenset({"fedper", "lstm_tokens", "regression", "vit_lora"})
"""Others, too, keep layers at home, have a tokenizer or adapters, or list records."""

MAKE = """
import sys
from pathlib import Path
from tests.apps.simulate import main
from tests.apps.truth import write_truth
main()
if sys.argv[1] not in {listed}:
    write_truth(Path.cwd())
"""
"""Runs an app and states the truth of the run, in one process, as both load the framework."""

WITHOUT_TRUTH = frozenset({"words"})
"""Questions whose truth no owner can state, so that claims stay unchecked."""


def run(folder: Path, *command: str) -> str:
    """Run a command in a folder, and return what it prints."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly if name in NIGHTLY else ())
        for name in SPARE
    ],
)
def test_two_commands_lead_from_the_recording_of_an_app_to_scored_claims(
    name: str, tmp_path: Path
) -> None:
    run(tmp_path, sys.executable, "-c", MAKE.format(listed=set(LISTED)), name, str(tmp_path))
    folder = tmp_path / name

    said = run(
        folder,
        *OVERHEARD,
        "init",
        "--from-recording",
        "recording",
        "--flower",
        ".",
        *SPARE[name],
    )
    assert "Next: overheard audit plan.toml --transcript recording\n" in said
    assert "The order of the classes does not fit" not in said
    run(folder, *OVERHEARD, "audit", "plan.toml", "--transcript", "recording")

    found = json.loads((folder / "plan-audit" / "findings.json").read_text())
    # `init` promised that these attacks run, and each claim is held against what clients held.
    assert found["refusals"] == []
    claims = [one for one in found["findings"] if not one["is_control"]]
    assert {one["target"] for one in claims} >= parties(folder)
    checked = [one for one in claims if one["question"] not in WITHOUT_TRUTH]
    assert checked
    assert all(one["scores"] for one in checked)
    assert [one for one in claims if not one["is_checked"]] == [
        one for one in claims if one["question"] in WITHOUT_TRUTH
    ]
    assert {one["question"] for one in found["verdicts"]} >= {
        "membership" if name in LISTED else "label_shares"
    }


def parties(folder: Path) -> set[str]:
    """Return the clients that the app names."""
    return set(json.loads((folder / "recording" / "node_names.json").read_text()))
