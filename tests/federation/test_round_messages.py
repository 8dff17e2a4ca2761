"""The messages in memory equal those that are read from the disk."""

from pathlib import Path

import pytest
import torch

from overheard.archive.manifest import Manifest
from overheard.archive.reader import read_round
from overheard.archive.recorder import Recorder
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    Message,
    MissingReply,
    Update,
    Weights,
)
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.task import Task
from overheard.federation.round_messages import RoundMessages

MANIFEST = Manifest(Task((2,), ("a", "b")), "linear", None, (), (SERVER,), rounds=1)


def weights(dtype: torch.dtype) -> Weights:
    # A third has no exact value in any of these types.
    return {"b": torch.full((3,), 1 / 3, dtype=dtype), "a": torch.ones(2, dtype=dtype)}


def messages(dtype: torch.dtype) -> list[Message]:
    reader = frozenset({SERVER})
    update = Update(weights(dtype), 5, {"loss": 0.5}, weights(dtype))
    return [
        Message(0, SERVER, reader, Broadcast(weights(dtype), {}, weights(dtype))),
        Message(0, client(0), reader, MissingReply("late")),
        Message(0, client(1), reader, update),
        Message(0, COHORT, reader, Aggregate(weights(dtype), frozenset({client(1)}), 5)),
    ]


def tensors(message: Message) -> list[torch.Tensor]:
    body = message.body
    match body:
        case Broadcast():
            found = [body.weights, body.control]
        case Update():
            found = [body.delta, body.control]
        case Aggregate():
            found = [body.delta]
        case _:
            found = []
    return [tensor for one in found for tensor in (one or {}).values()]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_kept_messages_equal_those_on_the_disk(tmp_path: Path, dtype: torch.dtype) -> None:
    with Recorder(tmp_path, MANIFEST).open_round() as open_round:
        record = RoundMessages(open_round)
        for message in messages(dtype):
            record.record(message)
    kept, read = record.in_memory(), read_round(tmp_path, 0)
    assert kept is not None
    assert len(kept) == len(read) == 4
    for ours, theirs in zip(kept, read, strict=True):
        assert (ours.sender, ours.readers) == (theirs.sender, theirs.readers)
        assert type(ours.body) is type(theirs.body)
        assert len(tensors(ours)) == len(tensors(theirs))
        for one, other in zip(tensors(ours), tensors(theirs), strict=True):
            assert one.dtype == other.dtype
            assert torch.equal(one, other)


def test_nothing_is_kept_beyond_the_limit_and_the_disk_answers(tmp_path: Path) -> None:
    # The broadcast takes 2 x 5 numbers of 4 bytes; the update would take as many again.
    with Recorder(tmp_path, MANIFEST).open_round() as open_round:
        record = RoundMessages(open_round, most_bytes=79)
        recorded = [record.record(message) for message in messages(torch.float32)]
    assert record.in_memory() is None
    assert len(tensors(recorded[2])) == 4
    assert [one.sender for one in recorded] == [one.sender for one in read_round(tmp_path, 0)]
