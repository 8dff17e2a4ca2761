"""A follower must know whether a further round will be recorded."""

from pathlib import Path

import pytest

from overheard.archive.layout import end_path
from overheard.archive.manifest import Manifest
from overheard.archive.recorder import Recorder
from overheard.archive.run_end import has_ended, mark_end
from overheard.core.errors import TranscriptError
from overheard.core.messages import Message, MissingReply
from overheard.core.parties import SERVER, client


def begin(folder: Path, rounds: int | None) -> Recorder:
    return Recorder(folder, Manifest(None, "", None, (), (SERVER,), rounds))


def record_round(recorder: Recorder) -> None:
    number = recorder.committed_rounds()
    with recorder.open_round() as open_round:
        open_round.record(Message(number, client(0), frozenset({SERVER}), MissingReply("late")))


def test_a_run_with_planned_rounds_ends_with_its_final_model(tmp_path: Path) -> None:
    recorder = begin(tmp_path, rounds=1)
    record_round(recorder)
    assert not has_ended(tmp_path)
    record_round(recorder)
    assert has_ended(tmp_path)


def test_a_run_of_unknown_length_ends_with_the_mark(tmp_path: Path) -> None:
    recorder = begin(tmp_path, rounds=None)
    record_round(recorder)
    assert not has_ended(tmp_path)
    mark_end(tmp_path)
    assert has_ended(tmp_path)


def test_a_run_that_stops_early_ends_with_the_mark(tmp_path: Path) -> None:
    record_round(begin(tmp_path, rounds=9))
    mark_end(tmp_path)
    assert has_ended(tmp_path)


def test_a_further_round_cancels_the_mark(tmp_path: Path) -> None:
    recorder = begin(tmp_path, rounds=None)
    record_round(recorder)
    mark_end(tmp_path)
    record_round(recorder)
    assert not has_ended(tmp_path)


@pytest.mark.parametrize("content", ["", "7", '{"rounds": -1}', '{"rounds": 1, "more": 2}'])
def test_refuses_a_damaged_mark(tmp_path: Path, content: str) -> None:
    record_round(begin(tmp_path, rounds=None))
    end_path(tmp_path / "transcript").write_text(content)
    with pytest.raises(TranscriptError, match=r"ended\.json is damaged.*delete it"):
        has_ended(tmp_path)
