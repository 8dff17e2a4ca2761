"""Only the latest rounds of a growing recording are kept, whatever is written when."""

from pathlib import Path

import pytest
import torch

from overheard.archive.layout import messages_path
from overheard.archive.manifest import Manifest
from overheard.archive.recorder import OpenRound, Recorder
from overheard.archive.run_end import mark_end
from overheard.auditing.following.growing_recording import GrowingRecording
from overheard.core.errors import TranscriptError
from overheard.core.messages import Broadcast, Evaluation, Message, Update
from overheard.core.parties import SERVER, client

MODEL = {"weight": torch.zeros(2)}


def begin(folder: Path) -> Recorder:
    return Recorder(folder, Manifest(None, "", None, (), (SERVER,), None))


def broadcast(open_round: OpenRound, number: int) -> None:
    message = Message(number, SERVER, frozenset({client(0)}), Broadcast(MODEL))
    open_round.record(message)


def update(open_round: OpenRound, number: int) -> None:
    message = Message(number, client(0), frozenset({SERVER}), Update(MODEL, 3))
    open_round.record(message)


def record_round(recorder: Recorder) -> None:
    number = recorder.committed_rounds()
    with recorder.open_round() as open_round:
        broadcast(open_round, number)
        update(open_round, number)


def numbers(growing: GrowingRecording) -> list[int]:
    return sorted({message.round for message in growing.transcript().messages})


def test_a_recording_that_does_not_exist_has_nothing_new(tmp_path: Path) -> None:
    growing = GrowingRecording(tmp_path / "later", 3)
    assert not growing.read_new_rounds()
    assert not growing.has_ended()
    assert (growing.rounds, growing.newest) == (0, -1)


def test_reads_each_round_once(tmp_path: Path) -> None:
    recorder, growing = begin(tmp_path), GrowingRecording(tmp_path, 3)
    assert not growing.read_new_rounds()
    for number in range(2):
        record_round(recorder)
        assert growing.read_new_rounds()
        assert not growing.read_new_rounds()
        assert (growing.newest, growing.rounds) == (number, number + 1)
        assert 0 <= growing.seconds_since_newest() < 60
    assert growing.parties == {SERVER, client(0)}


def test_keeps_the_latest_rounds_and_counts_all(tmp_path: Path) -> None:
    recorder, growing = begin(tmp_path), GrowingRecording(tmp_path, 2)
    for _ in range(5):
        record_round(recorder)
    assert growing.read_new_rounds()
    assert numbers(growing) == [3, 4]
    assert growing.rounds == 5


def test_a_round_that_is_committed_twice_is_read_again(tmp_path: Path) -> None:
    """A server that evaluates before it trains commits the evaluations first."""
    recorder, growing = begin(tmp_path), GrowingRecording(tmp_path, 2)
    record_round(recorder)
    growing.read_new_rounds()
    with recorder.open_round() as open_round:
        broadcast(open_round, 1)
        open_round.record(Message(1, client(0), frozenset({SERVER}), Evaluation({}, 3)))
        open_round.close()
        assert not growing.read_new_rounds()
        assert growing.newest == 0
        update(open_round, 1)
        open_round.close()
        assert growing.read_new_rounds()
        assert (growing.newest, growing.rounds) == (1, 2)
        assert len(growing.transcript().messages) == 2 + 3
    # The end of the round commits the same messages once more.
    assert not growing.read_new_rounds()


def test_a_round_that_is_taken_back_is_forgotten(tmp_path: Path) -> None:
    recorder, growing = begin(tmp_path), GrowingRecording(tmp_path, 2)
    record_round(recorder)
    record_round(recorder)
    growing.read_new_rounds()
    messages_path(tmp_path / "transcript", 1).unlink()
    assert not growing.read_new_rounds()
    assert (growing.rounds, numbers(growing)) == (1, [0])


def test_the_end_is_known_from_the_recording(tmp_path: Path) -> None:
    record_round(begin(tmp_path))
    growing = GrowingRecording(tmp_path, 2)
    assert not growing.has_ended()
    mark_end(tmp_path)
    assert growing.has_ended()


def test_refuses_a_damaged_round(tmp_path: Path) -> None:
    record_round(begin(tmp_path))
    messages_path(tmp_path / "transcript", 0).write_text("{}\n")
    with pytest.raises(TranscriptError, match="line 1"):
        GrowingRecording(tmp_path, 2).read_new_rounds()
