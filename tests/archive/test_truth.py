from pathlib import Path

import pytest
import torch

from overheard.archive.layout import truth_path
from overheard.archive.truth import has_truth, read_truth, write_truth
from overheard.core.errors import TranscriptError
from overheard.core.parties import client
from overheard.core.truth import GroundTruth


def test_gives_back_what_was_written(tmp_path: Path) -> None:
    counts = {(0, client(3)): torch.tensor([4, 0, 1]), (2, client(0)): torch.tensor([0, 0, 7])}
    truth = GroundTruth(counts, {0: 0.1, 1: 1 / 3}, {client(3): (2, 5), client(0): (1,)})
    write_truth(tmp_path, truth)
    found = read_truth(tmp_path)
    assert has_truth(tmp_path)
    assert found.accuracy == truth.accuracy
    assert found.shifts == truth.shifts
    assert list(found.counts) == list(counts)
    assert all(torch.equal(found.counts[key], counts[key]) for key in counts)


def test_stands_outside_the_transcript(tmp_path: Path) -> None:
    assert truth_path(tmp_path).parent == tmp_path


def test_a_truth_that_was_kept_back_is_named(tmp_path: Path) -> None:
    assert not has_truth(tmp_path)
    with pytest.raises(TranscriptError, match="can be attacked, not scored"):
        read_truth(tmp_path)


def test_a_truth_that_says_nothing_of_shifts_has_none(tmp_path: Path) -> None:
    truth_path(tmp_path).write_text('{"counts": [], "accuracy": []}')
    assert read_truth(tmp_path).shifts == {}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b'{"counts": [{"round": 0, "party": "x", "labels": [1.5]}], "accuracy": []}',
        b'{"counts": [{"round": 0, "party": "../x", "labels": [1]}], "accuracy": []}',
        b'{"counts": [], "accuracy": [{"round": 0, "accuracy": NaN}]}',
        b'{"counts": [], "accuracy": [], "shifts": [{"party": "x", "rounds": ["1"]}]}',
        b'{"counts": [], "accuracy": [], "shifts": [{"party": "<x>", "rounds": [1]}]}',
    ],
)
def test_a_damaged_truth_is_refused(tmp_path: Path, content: bytes) -> None:
    truth_path(tmp_path).write_bytes(content)
    with pytest.raises(TranscriptError, match="is damaged"):
        read_truth(tmp_path)
