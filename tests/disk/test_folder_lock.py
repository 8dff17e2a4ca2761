"""Two processes never write to one folder; a killed one locks nobody out."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from overheard.core.errors import OutputError
from overheard.disk.folder_lock import LOCK_FILE, lock_folder
from overheard.disk.writing import partial_path

HOLDER = """
import sys, time
from pathlib import Path
from overheard.disk.writing import partial_path
from overheard.disk.folder_lock import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path):
    """Another process that holds the lock of `tmp_path`."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def test_refuses_a_folder_in_which_another_process_works_and_names_it(
    holder: "subprocess.Popen[str]", tmp_path: Path
):
    message = rf"another process works here since 20.* UTC, process {holder.pid}: wait until"
    with pytest.raises(OutputError, match=message), lock_folder(tmp_path):
        pass
    assert (tmp_path / LOCK_FILE).exists()


def test_takes_over_the_lock_of_a_killed_process(
    holder: "subprocess.Popen[str]", tmp_path: Path
):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / LOCK_FILE).exists()
    with lock_folder(tmp_path):
        assert json.loads((tmp_path / LOCK_FILE).read_text())["pid"] == os.getpid()
    assert list(tmp_path.iterdir()) == []


def test_removes_what_a_killed_process_left_half_written(tmp_path: Path):
    transcript = tmp_path / "runs" / "a" / "transcript" / "manifest.json"
    halves = [tmp_path / "findings.json", tmp_path / "cells" / "a.json", transcript]
    for path in halves:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial_path(path).write_text("half")
    (tmp_path / "cells" / "b.json").write_text("whole")
    with lock_folder(tmp_path):
        left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    # A transcript is left to who continues it.
    assert left - {LOCK_FILE, "b.json"} == {one.name for one in transcript.parent.iterdir()}


def test_a_second_audit_of_the_same_process_is_refused_too(tmp_path: Path):
    with (
        lock_folder(tmp_path),
        pytest.raises(OutputError, match=f"process {os.getpid()}"),
        lock_folder(tmp_path),
    ):
        pass


def test_an_error_releases_the_lock(tmp_path: Path):
    with pytest.raises(KeyError), lock_folder(tmp_path):
        raise KeyError
    with lock_folder(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_lock_file_of_nobody_is_taken_over(tmp_path: Path):
    (tmp_path / LOCK_FILE).write_bytes(b"\xff{")
    with lock_folder(tmp_path):
        pass


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_writes_through_no_link(tmp_path: Path, link: Callable[[Path, Path], None]):
    (tmp_path / "precious").write_text("years of work")
    (tmp_path / "audit").mkdir()
    link(tmp_path / "precious", tmp_path / "audit" / LOCK_FILE)
    for _ in range(2):
        with pytest.raises(OutputError, match=LOCK_FILE), lock_folder(tmp_path / "audit"):
            pass
    assert (tmp_path / "precious").read_text() == "years of work"
    (tmp_path / "audit" / LOCK_FILE).unlink()
    with lock_folder(tmp_path / "audit"):
        pass


def test_warns_where_files_cannot_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(handle: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, "no locks on this disk")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.warns(UserWarning, match="cannot be locked: start no other"):  # noqa: SIM117
        with lock_folder(tmp_path), lock_folder(tmp_path):
            assert list(tmp_path.iterdir()) == []
