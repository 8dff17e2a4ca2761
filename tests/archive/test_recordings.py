"""Folders of recordings."""

import os
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.archive.layout import (
    checked_file_size,
    path_exists,
    plain_file_sizes,
    round_folder,
    weights_file_name,
    weights_path,
)
from overheard.archive.recordings import find_newer_recording, find_recordings
from overheard.core.errors import TranscriptError
from overheard.core.messages import Broadcast, Timestamps, Update
from overheard.core.parties import PARTY_NAME, SERVER, Party, client
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


parties = st.from_regex(PARTY_NAME, fullmatch=True).map(Party)


kinds = st.sampled_from(["broadcast", "update", "aggregate", "distilled"])


def test_a_file_name_has_sender_and_kind() -> None:
    assert weights_file_name(7, client(3), "update") == "0007-client-3-update.safetensors"
    name = weights_file_name(7, Party("client/hôpital"), "update")
    assert weights_path(Path("t"), 0, name).name == "0007-client-h_pital-update.safetensors"


@given(parties, parties, kinds, kinds)
def test_messages_of_a_round_have_distinct_files_even_on_case_insensitive_disks(
    one: Party, other: Party, kind: str, other_kind: str
) -> None:
    first, second = weights_file_name(0, one, kind), weights_file_name(1, other, other_kind)
    assert first.lower() != second.lower()


@given(parties, kinds, st.integers(0, 10**7))
def test_every_written_name_is_accepted_by_the_reader(
    party: Party, kind: str, index: int
) -> None:
    name = weights_file_name(index, party, kind)
    assert weights_path(Path("t"), 2, name) == Path("t/rounds/r0002") / name
    assert len(name) < 255


@pytest.mark.parametrize(
    "name",
    [
        "../0000-a-update.safetensors",
        "/etc/passwd",
        "0000-a/../../x.safetensors",
        "..",
        "",
        "0000-a-update.safetensors\n",
        "0000-a\\b.safetensors",
        "manifest.json",
    ],
)
def test_a_name_outside_of_the_folder_is_refused(name: str) -> None:
    with pytest.raises(TranscriptError, match="no name of a weights file"):
        weights_path(Path("t"), 0, name)


def test_a_folder_that_links_outside_is_refused(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "t" / "rounds"
    outside.mkdir()
    inside.mkdir(parents=True)
    (outside / "x").write_text("secret")
    round_folder(tmp_path / "t", 0).symlink_to(outside)
    with pytest.raises(TranscriptError, match="links to outside"):
        checked_file_size(round_folder(tmp_path / "t", 0) / "x", tmp_path / "t")


def test_a_link_loop_and_a_missing_file_are_reported(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("loop", "absent"):
        with pytest.raises(TranscriptError, match=f"{name} cannot be read"):
            checked_file_size(tmp_path / name, tmp_path)


def test_the_sizes_of_plain_files_leave_out_links_and_folders(tmp_path: Path) -> None:
    (tmp_path / "t" / "sub").mkdir(parents=True)
    (tmp_path / "t" / "x").write_bytes(b"123")
    (tmp_path / "t" / "link").symlink_to(tmp_path / "t" / "x")
    assert plain_file_sizes(tmp_path / "t", tmp_path / "t") == {"x": 3}


def test_no_sizes_are_told_of_a_folder_outside_or_none(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").write_bytes(b"123")
    (tmp_path / "t" / "round").symlink_to(tmp_path / "outside")
    assert plain_file_sizes(tmp_path / "t" / "round", tmp_path / "t") == {}
    assert plain_file_sizes(tmp_path / "t" / "absent", tmp_path / "t") == {}


def test_a_folder_without_permission_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(TranscriptError, match="ask for the permission"):
        path_exists(tmp_path / "x")
