"""Recordings beside each other: which is newer, and of the same federation."""

import os
from pathlib import Path

import pytest
import torch

from overheard.archive.recordings import find_newer_recording, find_recordings
from overheard.core.messages import Broadcast, Timestamps, Update
from overheard.core.parties import SERVER, client
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.run_info import RunInfo


def record(folder: Path, moment: float | None, clients: tuple[int, ...] = (0, 1)) -> Path:
    """Record one round at a time; None = without times."""
    times = None if moment is None else Timestamps(moment, moment)
    weights = {"w": torch.ones(2)}
    writer = AsyncWriter(folder, RunInfo("flower"))
    parties = [client(number) for number in clients]
    writer.begin_round([SERVER, *parties])
    writer.write(SERVER, frozenset(parties), lambda: Broadcast(weights), times=times)
    for one in parties:
        writer.write(one, frozenset({SERVER}), lambda: Update(weights, 3), times=times)
    writer.commit()
    writer.close()
    return folder


def test_a_newer_run_of_the_same_parties_is_found(tmp_path: Path):
    old, new = record(tmp_path / "march", 1000.0), record(tmp_path / "april", 2000.0)
    found = find_newer_recording(old)
    assert found is not None
    assert (found.folder, found.rounds, found.newest) == (new.resolve(), 1, 2000.0)
    assert find_newer_recording(old / "transcript") == found
    assert find_newer_recording(new) is None


def test_the_next_run_of_a_recorder_is_found_although_its_parties_have_new_names(
    tmp_path: Path,
):
    old = record(tmp_path / "recording", 1000.0)
    record(tmp_path / "recording-2", 3000.0, (7, 8))
    record(tmp_path / "other", 4000.0, (5, 6))
    found = find_newer_recording(old)
    assert found is not None
    assert found.folder.name == "recording-2"


def test_without_times_the_last_written_file_counts(tmp_path: Path):
    old, new = record(tmp_path / "a", None), record(tmp_path / "b", None)
    for folder, moment in ((old, 100), (new, 200)):
        os.utime(folder / "transcript/rounds/r0000/messages.jsonl", (moment, moment))
    assert [one.folder.name for one in find_recordings(tmp_path)] == ["b", "a"]
    assert find_newer_recording(old) == find_recordings(tmp_path.resolve())[0]


@pytest.mark.parametrize("damage", ["manifest.json", "rounds/r0000/messages.jsonl"])
def test_what_cannot_be_read_is_left_out(tmp_path: Path, damage: str):
    old, new = record(tmp_path / "a", 1000.0), record(tmp_path / "a-2", 2000.0)
    (new / "transcript" / damage).write_text("{")
    assert find_newer_recording(old) is None
    assert find_newer_recording(tmp_path / "none") is None
    assert find_recordings(tmp_path / "none") == ()
