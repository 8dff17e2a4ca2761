"""A folder of global models alone becomes a run that a reader of releases has."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from overheard.archive.reader import open_transcript
from overheard.core.errors import TranscriptError
from overheard.core.messages import Broadcast
from overheard.core.parties import late_joiner
from overheard.planning.recorded_facts import read_recorded_facts
from overheard.recorders.folder_import import import_recording


def save(folder: Path, names: Sequence[str]) -> Path:
    """Save a model for each name; the numbers of each are equal."""
    folder.mkdir(parents=True)
    for number, name in enumerate(names):
        weights = {"fc.weight": torch.full((3, 2), float(number)), "fc.bias": torch.ones(3)}
        if name.endswith(".npz"):
            np.savez(folder / name, **{key: one.numpy() for key, one in weights.items()})
        else:
            torch.save({"round": number, "state_dict": weights}, folder / name)
    return folder


def test_models_in_a_folder_are_rounds_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    names = [f"global_v2_round_{number}.pt" for number in (9, 10, 11)]
    folder = save(tmp_path / "results", [*names, "best_model.pt"])
    for other in ("metrics.csv", "accuracy.png"):
        (folder / other).touch()
    imported = import_recording(folder, tmp_path / "run")
    assert (imported.rounds, imported.clients, imported.updates) == (2, 0, 0)
    assert "nothing can be asked about single clients" in imported.notes[0]
    assert imported.notes[1:] == ("Models of other names were left out: best_model.pt.",)
    messages = open_transcript(tmp_path / "run").messages
    assert all(isinstance(one.body, Broadcast) for one in messages)
    first = [one.body.weights["fc.weight"][0, 0].item() for one in messages]
    assert first == [0.0, 1.0, 2.0]
    facts = read_recorded_facts(tmp_path / "run")
    assert (facts.rounds, facts.observer, facts.is_global_only) == (2, late_joiner(0), True)


def test_a_sign_in_place_of_a_number_is_another_name(tmp_path: Path) -> None:
    folder = save(tmp_path / "results", ["m#.pt", "m1.pt", "m2.pt", "m3.pt"])
    imported = import_recording(folder, tmp_path / "run")
    assert imported.rounds == 2
    assert imported.notes[1:] == ("Models of other names were left out: m#.pt.",)


def test_models_of_every_tenth_round_count_as_steps_of_ten(tmp_path: Path) -> None:
    folder = save(tmp_path / "results", ["model10.npz", "model20.npz", "model30.npz"])
    (folder / "about.toml").write_text('clients = ["0", "1"]\n')
    imported = import_recording(folder, tmp_path / "run")
    assert imported.clients == 2
    assert "The models are 10 rounds apart" in imported.notes[1]


def add_facts(folder: Path) -> None:
    (folder / "about.toml").write_text("examples = { a = 3 }\n")


@pytest.mark.parametrize(
    ("names", "change", "told"),
    [
        (["m1.pt", "m2.pt", "m4.pt"], None, "not equally far apart"),
        (["m1.pt", "m01.pt", "m2.pt"], None, "two models have the same number"),
        (["m1_1.pt", "m2_2.pt"], None, "differ in 2 numbers"),
        (["round_1.pt", "round_2.pt", "client_1_round_1.pt"], None, "is a client's"),
        (["m1.pt", "m2.pt"], add_facts, "examples is about files of clients"),
    ],
)
def test_says_what_to_do_where_the_order_of_models_is_not_known(
    tmp_path: Path, names: list[str], change: Callable[[Path], None] | None, told: str
) -> None:
    folder = save(tmp_path / "results", names)
    if change is not None:
        change(folder)
    with pytest.raises(TranscriptError, match=told):
        import_recording(folder, tmp_path / "run")
