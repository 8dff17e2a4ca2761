"""Folders are opened, locked and written to without following links."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from time import monotonic

import pytest

from overheard.core.errors import OutputError
from overheard.disk import open_folder
from overheard.disk.folder_lock import LOCK_FILE, lock_folder
from overheard.disk.folders import (
    group_number,
    make_folder,
    make_new_folder,
    make_output_folder,
    remove_file,
    remove_folder,
)
from overheard.disk.writing import (
    partial_path,
    remove_partial_files,
    write_bytes,
    write_unflushed,
)

FLIP_SECONDS = 0.5


@pytest.fixture(params=["handles", "paths"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that works relative to open folders, and one that does not."""
    if request.param == "paths":
        monkeypatch.setattr(open_folder, "OPENS_FOLDERS", False)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder outside, with a precious file in it."""
    folder = tmp_path / "victim"
    (folder / "deep").mkdir(parents=True)
    for name in ("x", "deep/x", f".x.{'0' * 16}.part"):
        (folder / name).write_text("precious")
    return folder


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


ACTIONS: dict[str, Callable[[Path, Path], object]] = {
    "write": lambda path, out: write_bytes(path, b"new", inside=out),
    "write unflushed": lambda path, out: write_unflushed(path, b"new", inside=out),
    "make": lambda path, out: make_folder(path, inside=out),
    "make new": lambda path, out: make_new_folder(path, inside=out),
    "remove file": lambda path, out: remove_file(path, inside=out),
    "remove folder": lambda path, out: remove_folder(path, inside=out),
    "remove halves": lambda path, out: remove_partial_files(path.parent, inside=out),
}


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS.keys())
@pytest.mark.parametrize("linked", ["a", "a/b"])
def test_a_linked_folder_is_refused_and_named(
    tmp_path: Path, victim: Path, action: Callable[[Path, Path], object], linked: str
) -> None:
    out = tmp_path / "out"
    (out / linked).parent.mkdir(parents=True)
    (out / linked).symlink_to(victim, target_is_directory=True)
    before = contents(victim)
    (victim / "b").symlink_to(victim)
    with pytest.raises(OutputError, match=rf"out/{linked} is a link.*remove the link"):
        action(out / "a" / "b" / "x", out)
    assert contents(victim) == before


@pytest.mark.usefixtures("system")
def test_the_output_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    out = tmp_path / "out"
    out.symlink_to(tmp_path / "disk")
    write_bytes(out / "a" / "x", b"1", inside=out)
    assert (tmp_path / "disk" / "a" / "x").read_bytes() == b"1"
    remove_file(out / "a" / "x", inside=out)
    remove_folder(out / "a", inside=out)
    assert list((tmp_path / "disk").iterdir()) == []


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS.keys())
def test_nothing_outside_of_the_output_folder_is_touched(
    tmp_path: Path, victim: Path, action: Callable[[Path, Path], object]
) -> None:
    before = contents(victim)
    for path in (victim / "x", tmp_path / "out" / ".." / "victim" / "x"):
        with pytest.raises(OutputError, match="is outside of"):
            action(path, tmp_path / "out")
    assert contents(victim) == before


@pytest.mark.usefixtures("system")
def test_links_in_a_folder_are_removed_and_not_what_they_link_to(
    tmp_path: Path, victim: Path
) -> None:
    out, before = tmp_path / "out", contents(victim)
    (out / "a").mkdir(parents=True)
    (out / "a" / "folder").symlink_to(victim)
    (out / "file").symlink_to(victim / "x")
    os.link(victim / "x", out / "a" / "hard")
    remove_folder(out / "a", inside=out)
    remove_file(out / "file", inside=out)
    assert list(out.iterdir()) == []
    remove_folder(out / "a", inside=out)
    remove_file(out / "missing" / "file", inside=out)
    assert contents(victim) == before


@pytest.mark.usefixtures("system")
def test_a_linked_folder_is_not_removed_but_named(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").symlink_to(victim)
    with pytest.raises(OutputError, match="out/a is a link"):
        remove_folder(tmp_path / "out" / "a", inside=tmp_path / "out")
    assert (victim / "x").exists()


@contextmanager
def flipped(folder: Path, victim: Path) -> Iterator[None]:
    """Replace a folder by a link to another one and back, as often as possible."""
    is_over = threading.Event()

    def flip() -> None:
        for number in count():
            if is_over.is_set():
                return
            aside = folder.with_name(f"aside{number}")
            # A writer may make the folder anew in the meantime.
            with suppress(OSError):
                folder.rename(aside)
                folder.symlink_to(victim)
            with suppress(OSError):
                folder.unlink()
                aside.rename(folder)

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [FLIP_SECONDS, pytest.param(2, marks=pytest.mark.nightly)])
def test_a_folder_that_is_swapped_for_a_link_during_a_write_is_not_followed(
    tmp_path: Path, victim: Path, seconds: float
) -> None:
    out, before, written, refused = tmp_path / "out", contents(victim), 0, 0
    (out / "a").mkdir(parents=True)
    with flipped(out / "a", victim):
        end = monotonic() + seconds
        while monotonic() < end:
            for action in ("write unflushed", "remove file", "remove halves"):
                try:
                    ACTIONS[action](out / "a" / "x", out)
                    ACTIONS["remove folder"](out / "a" / "deep", out)
                    written += 1
                except OutputError:
                    refused += 1
    assert contents(victim) == before
    assert written + refused > 10


@pytest.mark.parametrize("moment", ["create_file", "rename", "unlink", "names"])
def test_a_folder_that_is_swapped_at_the_worst_moment_is_not_followed(
    tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    out, before = tmp_path / "out", contents(victim)
    (out / "a").mkdir(parents=True)
    original = getattr(open_folder.OpenFolder, moment)

    def swap(folder: open_folder.OpenFolder, *names: str) -> object:
        if not (out / "a").is_symlink():
            (out / "a").rename(out / "aside")
            (out / "a").symlink_to(victim)
        return original(folder, *names)

    action = {"unlink": "remove file", "names": "remove halves"}.get(moment, "write")
    with monkeypatch.context() as patch:
        patch.setattr(open_folder.OpenFolder, moment, swap)
        ACTIONS[action](out / "a" / "x", out)
    assert contents(victim) == before
    assert [path.name for path in (out / "aside").iterdir()] == ["x"] * (action == "write")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o177])
def test_files_and_folders_are_for_the_user_alone_whatever_the_umask(
    tmp_path: Path, umask: int
) -> None:
    out = tmp_path / "out"
    before = os.umask(umask)
    try:
        write_bytes(out / "a" / "x", b"1", inside=out)
        make_folder(out / "b", inside=out)
    finally:
        os.umask(before)
    assert {mode_of(path) for path in (out, out / "a", out / "b")} == {0o700}
    assert mode_of(out / "a" / "x") == 0o600


def test_what_the_user_named_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_bytes(
            tmp_path / "new" / "x.sarif", b"", inside=tmp_path / "new", is_private=False
        )
        write_bytes(tmp_path / "above" / "out" / "x", b"", inside=tmp_path / "above" / "out")
    finally:
        os.umask(before)
    modes = [mode_of(tmp_path / name) for name in ("new", "new/x.sarif", "above", "above/out")]
    assert modes == [0o750, 0o640, 0o750, 0o700]


def test_a_folder_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir(mode=0o755)
    make_folder(tmp_path / "out", inside=tmp_path / "out")
    write_bytes(tmp_path / "out" / "x", b"", inside=tmp_path / "out")
    assert mode_of(tmp_path / "out") == 0o755
    assert mode_of(tmp_path / "out" / "x") == 0o600


def test_a_group_may_read_what_is_put_into_its_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    # Root may give to any group.
    group = os.getgid() or 4321
    before = os.umask(0o077)
    try:
        make_output_folder(out, group)
        write_bytes(out / "a" / "b" / "x", b"", inside=out)
    finally:
        os.umask(before)
    paths = (out, out / "a", out / "a" / "b", out / "a" / "b" / "x")
    assert [mode_of(path) for path in paths] == [0o2750, 0o2750, 0o2750, 0o640]
    assert {path.stat().st_gid for path in paths} == {group}
    make_output_folder(out, group)


def test_a_folder_that_is_not_for_the_group_is_refused_with_how_to_change_it(
    tmp_path: Path,
) -> None:
    tmp_path.chmod(0o755)
    with pytest.raises(OutputError, match=rf"chgrp {os.getgid()} .*chmod 2750"):
        make_output_folder(tmp_path, os.getgid())
    assert mode_of(tmp_path) == 0o755


def test_an_unknown_group_is_refused_with_how_to_find_one() -> None:
    with pytest.raises(OutputError, match=r"no group 'no such group'.*getent group"):
        group_number("no such group")


def test_one_of_many_that_make_a_new_folder_has_made_it(tmp_path: Path) -> None:
    made = list[bool]()
    start = threading.Barrier(8)

    def make() -> None:
        start.wait()
        made.append(make_new_folder(tmp_path / "out" / "claim", inside=tmp_path / "out"))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [False] * 7 + [True]


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
