"""A purge that is killed leaves whole results, and ends the same when it is run again."""

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

from overheard.archive.purge_note import PurgeNote, find_purge, read_purge_note
from overheard.auditing.purging.due_purges import due_dates
from overheard.auditing.purging.purge import carry_out, plan_purge

TODAY = date(2026, 11, 27)

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
