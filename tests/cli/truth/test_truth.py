"""The command that writes the ground truth of a test run."""

import json
from pathlib import Path

import pytest
import torch

from overheard.archive.truth import read_truth
from overheard.core.messages import Broadcast, Update
from overheard.core.parties import SERVER, Party
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.questions.target_distribution.true_facts import ClientTargets
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.run_info import RunInfo
from tests.cli.conftest import Command

NODES = {"client/1003": "0", "client/7": "1"}


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Return a recording of two rounds of two nodes, which the app calls 0 and 1."""
    folder = tmp_path / "recording"
    writer = AsyncWriter(folder, RunInfo("flower"))
    weights = {"weight": torch.ones(2, 2)}
    for _ in range(2):
        parties = [Party(one) for one in NODES]
        writer.begin_round([SERVER, *parties])
        writer.write(SERVER, frozenset(parties), lambda: Broadcast(weights))
        for one in parties:
            writer.write(one, frozenset({SERVER}), lambda: Update(weights, 5))
        writer.commit()
    writer.close()
    (folder / "node_names.json").write_text(json.dumps(NODES))
    return folder


def test_label_counts_of_partitions_become_the_ground_truth(
    overheard: Command, recording: Path, tmp_path: Path
) -> None:
    table = tmp_path / "counts.csv"
    table.write_text("owner,cat,dog\n0,3,2\nclient/7,0,5\n")
    said = overheard("truth", recording, "--counts", table)
    assert said.code == 0, said
    counts = read_truth(recording, [LabelCounts]).facts.need(LabelCounts).counts
    found = {place: one.tolist() for place, one in counts.items()}
    assert found == {
        (number, party): labels
        for number in (0, 1)
        for party, labels in (("client/1003", [3, 2]), ("client/7", [0, 5]))
    }
    # What is there is kept.
    assert "add --force" in overheard("truth", recording, "--counts", table).err
    table.write_text("owner,round,cat,dog\n0,0,3,2\n0,1,1,4\n1,0,0,5\n1,1,5,0\n")
    assert overheard("truth", recording, "--counts", table, "--force").code == 0
    counts = read_truth(recording, [LabelCounts]).facts.need(LabelCounts).counts
    assert counts[1, Party("client/1003")].tolist() == [1, 4]


def test_numbers_to_predict_become_their_distribution(
    overheard: Command, recording: Path, tmp_path: Path
) -> None:
    table = tmp_path / "prices.csv"
    table.write_text("owner,price\n0,1\n0,3\n1,10\n")
    assert overheard("truth", recording, "--targets", table).code == 0
    stated = read_truth(recording, [ClientTargets]).facts.need(ClientTargets).stated
    first = stated[Party("client/1003")]
    assert (first.examples, first.numbers[0].mean) == (2, 2.0)
    assert first.numbers[0].quantiles[0] == 1.0


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("owner,cat,dog\n0,3,2\n", "has no row of client/7"),
        ("owner,cat,dog\n0,3,2\n1,1,1\n9,1,1\n", "'owner' names 9, and the clients"),
        ("owner,cat,dog\n0,3,2\n0,3,2\n1,1,1\n", "two rows of client/1003"),
        ("owner,cat,dog\n0,3,-2\n1,1,1\n", "whole numbers from 0"),
        ("owner,cat,dog\n0,3,many\n1,1,1\n", "row 1 has 'many'"),
        ("owner,cat\n0,3\n1,1\n", "a column for each class"),
        ("ward,cat,dog\n0,3,2\n", "no column 'owner'"),
    ],
)
def test_what_cannot_be_true_is_refused(
    overheard: Command, recording: Path, tmp_path: Path, table: str, words: str
) -> None:
    file = tmp_path / "counts.csv"
    file.write_text(table)
    said = overheard("truth", recording, "--counts", file)
    assert said.code == 2
    assert words in " ".join(said.err.split())
    assert not (recording / "truth.json").exists()
