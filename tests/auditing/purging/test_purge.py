"""Purging an audit."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from multiprocessing import get_context
from pathlib import Path

import pytest

from overheard.archive.manifest import Manifest, read_manifest
from overheard.archive.purge_note import (
    PurgeNote,
    find_purge,
    read_purge_note,
    write_purge_note,
)
from overheard.archive.recorder import Recorder
from overheard.archive.run_end import mark_end
from overheard.auditing.folder import AuditFolder
from overheard.auditing.purging.due_purges import due_dates, find_folders
from overheard.auditing.purging.purge import carry_out, is_interrupted, plan_purge
from overheard.core.errors import OutputError, TranscriptError
from overheard.core.messages import Message, MissingReply
from overheard.core.parties import SERVER, client
from overheard.core.task import Task
from overheard.disk.folder_lock import lock_folder
from overheard.plans.retention import parse_retention

TODAY = date(2026, 11, 27)


KEPT = ("report.html", "findings.json", "findings.csv", "digests.json", "plan.toml")


@pytest.fixture
def audited(tmp_path: Path) -> Path:
    """A folder with everything that an audit writes, and a note of its user."""
    folder = tmp_path / "audit"
    inner = ("cells/1.safetensors", "bank/2.safetensors", "runs/none-seed0/truth.json")
    outer = ("followed.json", "pictures.html", "evidence/annex.pdf", "notes.txt")
    for name in (*KEPT, *inner, *outer):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"12345")
    return folder


def record(folder: Path) -> Path:
    """Record a round."""
    manifest = Manifest(Task((2,), ("a", "b")), "linear", None, (), (SERVER,), None)
    with Recorder(folder, manifest).open_round() as open_round:
        open_round.record(Message(0, client(3), frozenset({SERVER}), MissingReply("late")))
    return folder


def test_removes_all_but_results_and_notes_and_counts_it(audited: Path):
    planned = plan_purge(audited)
    sizes = {one.name: (one.files, one.bytes) for one in planned.entries}
    assert sizes == dict.fromkeys(
        ("cells", "bank", "runs", "followed.json", "pictures.html"), (1, 5)
    )
    assert planned.bytes == 25
    assert planned.kept == tuple(sorted((*KEPT, "evidence", "notes.txt")))
    carry_out(planned, TODAY)
    left = {one.name for one in audited.iterdir()}
    assert left == {*KEPT, "evidence", "notes.txt", "purged.json"}
    note = read_purge_note(audited)
    assert note is not None
    assert note.is_complete
    assert {one.name for one in note.removed} == set(sizes)


def test_results_are_removed_too_if_asked_and_the_folder_stays_known(audited: Path):
    carry_out(plan_purge(audited, with_results=True), TODAY)
    assert {one.name for one in audited.iterdir()} == {"notes.txt", "purged.json"}
    assert "its results, too" in find_purge(audited)
    assert plan_purge(audited).entries == ()


def test_nothing_can_be_resumed_in_a_purged_folder_and_its_runs_say_so(audited: Path):
    carry_out(plan_purge(audited), TODAY)
    with pytest.raises(OutputError, match=r"purged on 2026-11-27.*nothing can be resumed"):
        AuditFolder(audited).check_plan("12345")
    with pytest.raises(TranscriptError, match="purged on 2026-11-27"):
        read_manifest(audited / "runs" / "none-seed0")


def test_links_are_removed_and_not_what_they_link_to(audited: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.txt").write_text("mine")
    (audited / "bank" / "link").symlink_to(outside)
    (audited / "followed.json").unlink()
    (audited / "followed.json").symlink_to(outside)
    carry_out(plan_purge(audited), TODAY)
    assert (outside / "mine.txt").read_text() == "mine"
    assert not (audited / "bank").exists()
    assert not (audited / "followed.json").is_symlink()


def test_a_folder_in_use_and_a_folder_of_others_stay_as_they_are(audited: Path, tmp_path: Path):
    with lock_folder(audited), pytest.raises(OutputError, match="another process works here"):
        carry_out(plan_purge(audited), TODAY)
    assert (audited / "cells").is_dir()
    assert not (audited / "purged.json").exists()
    for other in (tmp_path, tmp_path / "missing"):
        with pytest.raises(OutputError, match="audit"):
            plan_purge(other)


def test_a_recording_is_removed_once_it_has_ended(tmp_path: Path):
    folder = record(tmp_path / "march")
    (folder / "truth.json").write_text("{}")
    with pytest.raises(OutputError, match="--run-is-over"):
        plan_purge(folder)
    assert plan_purge(folder, is_over=True).entries
    mark_end(folder)
    carry_out(plan_purge(folder), TODAY)
    assert [one.name for one in folder.iterdir()] == ["purged.json"]
    with pytest.raises(TranscriptError, match="its messages were removed"):
        read_manifest(folder / "transcript")


def test_a_purged_folder_in_which_a_new_run_is_recorded_is_not_purged_meanwhile(tmp_path: Path):
    folder = record(tmp_path / "march")
    mark_end(folder)
    carry_out(plan_purge(folder), TODAY)
    record(folder)
    with pytest.raises(OutputError, match="may still write"):
        plan_purge(folder)


def test_a_run_recorded_after_an_interrupted_purge_is_not_removed_with_it(tmp_path: Path):
    folder = record(tmp_path / "march")
    note = carry_out(plan_purge(folder, is_over=True), TODAY)
    write_purge_note(folder, note.model_copy(update={"is_complete": False}))
    assert is_interrupted(folder)
    record(folder)
    assert not is_interrupted(folder)
    with pytest.raises(OutputError, match="may still write"):
        plan_purge(folder)


@pytest.mark.parametrize("content", ["{", "[]", '{"kind": "audit"}', "\0" * 100_000])
def test_a_damaged_note_is_named(audited: Path, content: str):
    (audited / "purged.json").write_text(content)
    with pytest.raises(OutputError, match=r"purged\.json"):
        plan_purge(audited)


def state(folder: Path, retention: str) -> None:
    """Write the beginning of findings that state a retention."""
    release = json.dumps({"retention": retention})
    (folder / "findings.json").write_text(
        f'{{\n "format": "overheard findings",\n "made_on": "2026-11-01",\n'
        f' "release": {release},\n "class_names": [],\n "made_on": "2000-01-01"\n}}\n'
    )


def test_an_audit_states_until_when_it_may_be_stored(audited: Path):
    state(audited, "messages 20 days, results 1 year")
    dates = due_dates(audited)
    assert (dates.messages, dates.results) == (date(2026, 11, 21), date(2027, 11, 1))
    assert dates.are_messages_due(date(2026, 11, 22))
    assert not dates.are_messages_due(date(2026, 11, 21))
    assert not dates.are_results_due(TODAY)
    carry_out(plan_purge(audited), TODAY)
    assert due_dates(audited).messages is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda folder: state(folder, "for ever"), "unclear"),
        (lambda folder: (folder / "findings.json").unlink(), "states no retention"),
    ],
)
def test_what_states_no_retention_is_never_due(
    audited: Path, change: Callable[[Path], None], why: str
):
    change(audited)
    dates = due_dates(audited)
    assert why in dates.note
    assert (dates.messages, dates.results) == (None, None)


def test_audits_and_recordings_are_found_at_any_depth_and_runs_belong_to_their_audit(
    audited: Path, tmp_path: Path
):
    recording = record(tmp_path / "a" / "b" / "march")
    record(audited / "runs" / "none-seed0")
    (tmp_path / "link").symlink_to(audited)
    assert list(find_folders(tmp_path)) == [audited, recording] or list(
        find_folders(tmp_path)
    ) == [recording, audited]
    dates = due_dates(recording, parse_retention("1 day"))
    assert dates.messages is not None
    assert dates.results is None


REMOVED = ("cells/0.safetensors", "bank/0.safetensors", "runs/a/truth.json", "followed.json")


RESULTS = (
    "report.html", "findings.json", "digests.json", "plan.toml", "evidence/annex.pdf",
)  # fmt: skip


CHANGES = ("unlink", "rmdir", "replace")
"""The calls of the operating system by which a purge changes the disk."""


def make_audit(folder: Path, copies: int = 1) -> Path:
    """Write a folder with what an audit writes, with so many cells and simulations."""
    for name in (*REMOVED, *RESULTS, "notes.txt"):
        for number in range(copies if name.endswith(".safetensors") else 1):
            path = folder / name.replace("0.", f"{number}.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"12345")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def purge(folder: Path, *, with_results: bool) -> PurgeNote:
    return carry_out(plan_purge(folder, with_results=with_results), TODAY)


def purge_until(folder: Path, number: int) -> None:
    """Purge with results, and end the process before a change of the disk, as a kill would."""
    left = [number]

    def counted(change: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: object, **options: object) -> None:
            if left[0] == 0:
                os._exit(9)
            left[0] -= 1
            change(*arguments, **options)

        return call

    for name in CHANGES:
        setattr(os, name, counted(getattr(os, name)))
    purge(folder, with_results=True)
    os._exit(0)


@pytest.mark.skipif(os.name != "posix", reason="forks")
def test_a_purge_killed_before_any_change_of_the_disk_ends_the_same_when_run_again(
    tmp_path: Path,
):
    whole = make_audit(tmp_path / "whole")
    before = contents(whole)
    kept = {name: before[name] for name in (*RESULTS, "notes.txt")}
    note = purge(whole, with_results=True)
    code, number, interrupted = 9, 0, 0
    while code:
        killed = make_audit(tmp_path / str(number))
        process = get_context("fork").Process(target=purge_until, args=(killed, number))
        process.start()
        process.join()
        code, number = process.exitcode, number + 1
        # Results are removed after all messages.
        if (killed / "followed.json").exists():
            assert kept.items() <= contents(killed).items()
        # The note knows that results were to be removed.
        is_begun = due_dates(killed).is_interrupted
        assert is_begun == ("interrupted" in find_purge(killed))
        interrupted += is_begun
        assert purge(killed, with_results=not is_begun) == note
        assert contents(killed) == contents(whole)
    assert interrupted >= len(REMOVED) + len(RESULTS)


@pytest.mark.nightly
def test_a_command_killed_in_the_middle_of_a_purge_can_be_run_again(tmp_path: Path):
    # Enough to be in the middle of the cells when it is killed.
    copies = 3_000
    kept = (*RESULTS, "notes.txt")
    for share in (0.1, 0.5, 0.9):
        folder = make_audit(tmp_path / str(share), copies)
        command = [sys.executable, "-m", "overheard", "purge", str(folder), "--yes"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            while not (folder / "purged.json").exists() and process.poll() is None:
                time.sleep(0.01)
            while len(os.listdir(folder / "cells")) > copies * share:
                pass
            process.kill()
        assert process.returncode == -signal.SIGKILL
        note = read_purge_note(folder)
        assert note is not None
        assert not note.is_complete
        assert dict.fromkeys(kept, b"12345").items() <= contents(folder).items()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        assert contents(folder).keys() == {*kept, "purged.json"}
        note = read_purge_note(folder)
        assert note is not None
        assert note.is_complete
        assert {one.name: one.files for one in note.removed}["cells"] == copies
