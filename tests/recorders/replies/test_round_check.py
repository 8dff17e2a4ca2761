"""A recording that contradicts itself is told while it is written, once, and goes on."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from overheard.archive.reader import open_transcript
from overheard.consistency.check import RecordingCheck
from overheard.core.messages import Broadcast, Update
from overheard.core.parties import SERVER, client
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.run_info import RunInfo

ROUNDS = 6


def record(folder: Path, *, is_doubled: bool = False) -> int:
    """Record rounds of three clients, with updates minus the model once more if doubled."""
    generator = torch.Generator().manual_seed(1)
    model = torch.ones(40)
    writer = AsyncWriter(folder, RunInfo("a framework"))
    for _ in range(ROUNDS):
        writer.begin_round([SERVER, *map(client, range(3))])
        broadcast = Broadcast({"w": model})
        writer.write(SERVER, frozenset(map(client, range(3))), lambda body=broadcast: body)
        changes = [0.1 * torch.randn(40, generator=generator) for _ in range(3)]
        for number, change in enumerate(changes):
            update = Update({"w": change - model if is_doubled else change}, 10)
            writer.write(client(number), frozenset({SERVER}), lambda body=update: body)
        model = model + torch.stack(changes).mean(0)
    writer.close()
    assert writer.stopped is None
    return len(open_transcript(folder).messages)


def test_a_contradiction_is_told_once_with_the_option_that_mends_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert record(tmp_path, is_doubled=True) == 4 * ROUNDS
    assert caplog.text.count("contradicts itself") == 1
    assert 'kind="differences" in the recorder' in caplog.text
    # Nothing that is stored vouches for, or against, the recording.
    assert "contradicts" not in "".join(path.read_text() for path in tmp_path.rglob("*.json*"))


def test_a_recording_that_follows_is_not_talked_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    record(tmp_path)
    assert caplog.text == ""


def test_an_error_of_the_check_ends_neither_the_recording_nor_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: RecordingCheck, messages: Mapping[str, object]) -> None:
        raise RuntimeError("gone wrong")

    monkeypatch.setattr(RecordingCheck, "add", fail)
    assert record(tmp_path, is_doubled=True) == 4 * ROUNDS
    assert caplog.text == ""
