"""Apps that send control variates beside the model are recorded, whatever replies contain."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

from overheard.archive.reader import open_transcript, verify_transcript
from overheard.auditing.recorded_tensors.model_tensors import (
    match_model_tensors,
    select_matched_tensors,
)
from overheard.core.errors import PlanError
from overheard.core.messages import UnstoredMessage, Update
from overheard.core.parties import SERVER
from overheard.findings.traffic import measure_traffic
from overheard.recorders.flower import RecordingGrid
from tests.recorders.test_flower import NODES, Nodes, a_run, record_of

__all__ = ["a_run"]  # a fixture that every test here uses

START = {"weight": np.ones((2, 3), np.float32), "bias": np.ones(2, np.float32)}
MOVED = {name: one + 0.5 for name, one in START.items()}
CONTROL = {name: one * 4 for name, one in START.items()}
CHANGE = {name: one * 7 for name, one in START.items()}

MODEL, VARIATE = record_of(START), record_of(CONTROL)


def record_run(
    folder: Path, broadcast: dict[str, ArrayRecord], reply: dict[str, ArrayRecord]
) -> None:
    """Record one round in which all nodes send the same reply."""

    def answer(message: Message) -> Message:
        metrics = MetricRecord({"num-examples": 5})
        return Message(RecordDict({**reply, "metrics": metrics}), reply_to=message)

    with RecordingGrid(Nodes(answer), folder) as grid:
        sent = [Message(RecordDict(dict(broadcast)), node, "train") for node in NODES]
        assert len(list(grid.send_and_receive(sent))) == len(NODES)
    # The three replies and the broadcast have a file each.
    assert verify_transcript(folder) == 4


def updates(folder: Path, record: str | None = None) -> Sequence[Update]:
    """Return the updates that attacks get for a linear layer."""
    whole = open_transcript(folder)
    match = match_model_tensors(folder, whole, nn.Linear(3, 2), "", record)
    view = select_matched_tensors(whole, match).seen_by(SERVER)
    return [update for one in view.senders() for update in view.updates(one).values()]


@pytest.mark.parametrize(
    "reply",
    [
        {"arrays": record_of(MOVED), "c": VARIATE},
        {"arrays": record_of(MOVED)},
        {"model": record_of(MOVED)},
        {"arrays": record_of(MOVED), "delta_c": record_of(CHANGE)},
    ],
    ids=["the same records", "the model alone", "under another name", "the variate's change"],
)
def test_a_broadcast_of_two_records_can_be_audited(
    tmp_path: Path, reply: dict[str, ArrayRecord]
) -> None:
    record_run(tmp_path, {"arrays": MODEL, "c": VARIATE}, reply)
    for update in updates(tmp_path):
        assert list(update.delta) == ["weight", "bias"]
        assert all(bool((one == 0.5).all()) for one in update.delta.values())
        assert update.examples == 5


def test_a_broadcast_of_the_model_alone_can_be_answered_with_two_records(
    tmp_path: Path,
) -> None:
    record_run(tmp_path, {"arrays": MODEL}, {"arrays": record_of(MOVED), "c": VARIATE})
    assert all(bool((one.delta["bias"] == 0.5).all()) for one in updates(tmp_path))


def test_records_that_were_not_broadcast_are_kept_as_they_were_sent(tmp_path: Path) -> None:
    reply = {"arrays": record_of(MOVED), "delta_c": record_of(CHANGE)}
    record_run(tmp_path, {"arrays": MODEL, "c": VARIATE}, reply)
    whole = open_transcript(tmp_path)
    bodies = [one.body for one in whole.messages if isinstance(one.body, Update)]
    for body in bodies:
        assert set(body.delta) == {
            "arrays/weight", "arrays/bias", "delta_c/weight", "delta_c/bias"
        }  # fmt: skip
        assert bool((body.delta["delta_c/weight"] == 7).all())
    # Three replies of two records with 8 numbers of 4 bytes.
    assert measure_traffic(whole).up == 3 * 2 * 8 * 4


def test_a_record_that_replies_lack_is_refused_with_the_key_to_set(tmp_path: Path) -> None:
    record_run(tmp_path, {"arrays": MODEL, "c": VARIATE}, {"arrays": record_of(MOVED)})
    with pytest.raises(PlanError, match=r"record 'c'\. Set training\.record.* have: arrays"):
        updates(tmp_path, "c")


@pytest.mark.parametrize(
    "reply",
    [
        {"arrays": record_of({"weight": START["weight"]})},
        {"arrays": record_of({"weight": START["bias"], "bias": START["bias"]})},
        {"one": record_of(MOVED), "other": record_of(MOVED)},
    ],
    ids=["a tensor is missing", "another shape", "no common record"],
)
def test_replies_without_a_whole_record_of_the_broadcast_are_not_stored(
    tmp_path: Path, reply: dict[str, ArrayRecord]
) -> None:
    def answer(message: Message) -> Message:
        return Message(RecordDict(dict(reply)), reply_to=message)

    with RecordingGrid(Nodes(answer), tmp_path) as grid:
        content = RecordDict({"arrays": MODEL, "c": VARIATE})
        list(grid.send_and_receive([Message(content, node, "train") for node in NODES]))
    bodies = [one.body for one in open_transcript(tmp_path).messages[1:]]
    assert len(bodies) == len(NODES)
    assert all(isinstance(one, UnstoredMessage) for one in bodies)
    assert "other tensors" in bodies[0].reason or "shape" in bodies[0].reason


def test_the_numbers_of_a_recorded_model_are_exact(tmp_path: Path) -> None:
    record_run(tmp_path, {"arrays": MODEL, "c": VARIATE}, {"arrays": record_of(MOVED)})
    whole = open_transcript(tmp_path)
    match = match_model_tensors(tmp_path, whole, nn.Linear(3, 2), "", None)
    broadcast = select_matched_tensors(whole, match).seen_by(SERVER).broadcasts()[0]
    assert torch.equal(broadcast["weight"], torch.ones(2, 3))
