"""Files are written whole or not at all."""

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from overheard.core.errors import OutputError
from overheard.disk import open_folder, writing
from overheard.disk.direct_writer import BLOCK_BYTES, BUFFER_BYTES, DirectWriter
from overheard.disk.writing import (
    flush_files,
    is_partial,
    partial_path,
    remove_partial_files,
    write_bytes,
    write_new_text,
    write_text,
    write_unflushed,
)

WRITER = """
import sys
from pathlib import Path
from overheard.disk.writing import write_unflushed
path = Path(sys.argv[1])
for _ in range(100):
    write_unflushed(path, sys.argv[2].encode() * 2**16, inside=path.parent)
"""


def refuse_with(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)


def test_writes_text_as_utf_8_and_creates_parent_folders(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b" / "c.txt", "größer\n", inside=tmp_path)
    assert (tmp_path / "a" / "b" / "c.txt").read_bytes() == "größer\n".encode()


def test_leaves_nothing_beside_the_file(tmp_path: Path) -> None:
    write_bytes(tmp_path / "x", b"1", inside=tmp_path)
    write_bytes(tmp_path / "x", b"2", inside=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_bytes() == b"2"


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free space"),
        (errno.EDQUOT, "quota"),
        (errno.EACCES, "permission"),
        (errno.EROFS, "read-only"),
        (errno.EIO, "check the disk"),
    ],
)
@pytest.mark.parametrize("name", ["old", "new"])
def test_a_failed_write_leaves_the_old_file_and_names_path_and_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str, name: str
) -> None:
    write_bytes(tmp_path / "old", b"old", inside=tmp_path)
    refuse_with(number, monkeypatch)
    with pytest.raises(OutputError, match=remedy) as caught:
        write_bytes(tmp_path / name, b"new", inside=tmp_path)
    assert str(tmp_path / name) in str(caught.value)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


@pytest.mark.parametrize("direct_writer", [None, DirectWriter()])
def test_a_write_that_fails_halfway_leaves_nothing(
    tmp_path: Path, direct_writer: DirectWriter | None
) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, limits[1]))
    try:
        with pytest.raises(OutputError, match="File too large"):
            write_unflushed(
                tmp_path / "x", bytes(2**22), direct_writer=direct_writer, inside=tmp_path
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


Link = Callable[[Path, Path], None]


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("direct_writer", [None, DirectWriter()])
def test_a_file_outside_keeps_its_content_whatever_is_planted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    link: Link,
    direct_writer: DirectWriter | None,
) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "out"
    victim.write_text("precious")
    folder.mkdir()
    link(victim, folder / "x")
    link(victim, folder / ".x.part")
    write_unflushed(folder / "x", b"new", direct_writer=direct_writer, inside=folder)
    assert (folder / "x").read_bytes() == b"new"
    assert not (folder / "x").is_symlink()
    # Even a name that was guessed right is refused.
    guessed = partial_path(folder / "y")
    link(victim, guessed)
    monkeypatch.setattr(writing, "partial_path", lambda path: guessed)
    with pytest.raises(OutputError):
        write_unflushed(folder / "y", b"new", direct_writer=direct_writer, inside=folder)
    assert victim.read_text() == "precious"


def test_neither_a_pipe_nor_what_lies_among_the_devices_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As /dev/stdout is a link to the output of a process.
    monkeypatch.setattr(open_folder, "DEVICES", os.path.realpath(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "stdout").symlink_to("output")
    for name in ("pipe", "stdout"):
        with pytest.raises(OutputError, match="no file replaces: name another file"):
            write_text(tmp_path / name, "new", inside=tmp_path)
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "stdout").is_symlink()
    assert len(list(tmp_path.iterdir())) == 2


def test_no_link_to_a_missing_file_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guessed = partial_path(tmp_path / "x")
    guessed.symlink_to(tmp_path / "made")
    monkeypatch.setattr(writing, "partial_path", lambda path: guessed)
    with pytest.raises(OutputError):
        write_bytes(tmp_path / "x", b"new", inside=tmp_path)
    assert not (tmp_path / "made").exists()


def test_of_two_writers_of_a_new_file_one_wins_and_leaves_it_whole(tmp_path: Path) -> None:
    assert write_new_text(tmp_path / "x", "first", inside=tmp_path)
    assert not write_new_text(tmp_path / "x", "second", inside=tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "missing")
    assert not write_new_text(tmp_path / "link", "through", inside=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"x", "link"}
    assert (tmp_path / "x").read_text() == "first"


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP])
def test_a_new_file_needs_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*names: str, **handles: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    assert write_new_text(tmp_path / "x", "first", inside=tmp_path)
    assert not write_new_text(tmp_path / "x", "second", inside=tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["first"]


def test_two_writers_of_one_file_leave_one_whole_file(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "x"), "1"]) as other:
        for _ in range(100):
            write_unflushed(tmp_path / "x", b"2" * 2**16, inside=tmp_path)
            assert len(set((tmp_path / "x").read_bytes())) == 1
    assert other.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_only_what_was_half_written_is_removed(tmp_path: Path) -> None:
    kept = ["x", ".x.part", "x.0123456789abcdef.part", ".x.0123456789abcdef.part.txt"]
    for name in kept:
        (tmp_path / name).write_text("")
    partial_path(tmp_path / "x").write_text("half")
    partial_path(tmp_path / "x").symlink_to(tmp_path / "x")
    assert sum(map(is_partial, tmp_path.iterdir())) == 2
    remove_partial_files(tmp_path, inside=tmp_path)
    remove_partial_files(tmp_path / "missing", inside=tmp_path / "missing")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


def test_an_interruption_is_raised_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_bytes(tmp_path / "x", b"new", inside=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("file/x", "there is a file where a folder is needed"),
        ("file/deeper/x", "there is a file where a folder is needed"),
        ("folder", "there is a folder where a file is needed"),
    ],
)
def test_what_is_in_place_of_a_folder_or_file_is_reported(
    tmp_path: Path, name: str, words: str
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match=words):
        write_bytes(tmp_path / name, b"", inside=tmp_path)


def test_unflushed_files_are_complete_and_fail_like_others(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(40)]
    for path in paths:
        write_unflushed(path, path.name.encode(), inside=tmp_path)
    flush_files(paths)
    flush_files([])
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {b"%d" % n for n in range(40)}
    with pytest.raises(OutputError, match="there is a file where a folder is needed"):
        write_unflushed(tmp_path / "1" / "x", b"", inside=tmp_path)


def test_a_failed_flush_is_reported_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_unflushed(tmp_path / "x", b"1", inside=tmp_path)
    refuse_with(errno.ENOSPC, monkeypatch)
    with pytest.raises(OutputError, match="x: the disk is full"):
        flush_files([tmp_path / "x"])


def write(writer: DirectWriter, path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        writer.write(handle, content)
    finally:
        os.close(handle)


@pytest.mark.parametrize(
    "size",
    [0, 1, BLOCK_BYTES, BLOCK_BYTES + 1, BUFFER_BYTES - 1, BUFFER_BYTES, 2 * BUFFER_BYTES + 5],
)
def test_files_of_any_size_are_written_exactly(tmp_path: Path, size: int) -> None:
    content = np.random.default_rng(0).bytes(size)
    writer = DirectWriter()
    for name, written in (("x", content), ("y", content[::-1])):
        write(writer, tmp_path / name, written)
        assert (tmp_path / name).read_bytes() == written


def test_without_direct_io_files_are_written_normally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = DirectWriter()
    # Unaligned sizes fail in the same way as a disk without direct I/O.
    monkeypatch.setattr("overheard.disk.direct_writer.BLOCK_BYTES", 1)
    for content in (b"first", b"second"):
        write(writer, tmp_path / content.decode(), content)
        assert (tmp_path / content.decode()).read_bytes() == content


def test_what_was_written_directly_before_an_error_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first megabyte is written directly; the rest is not aligned, and fails.
    monkeypatch.setattr("overheard.disk.direct_writer.BLOCK_BYTES", 1)
    content = np.random.default_rng(0).bytes(BUFFER_BYTES + 5)
    write(DirectWriter(), tmp_path / "x", content)
    assert (tmp_path / "x").read_bytes() == content


BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.nightly
@pytest.mark.parametrize("benchmark", ["kill_audit", "kill_recording"])
def test_what_is_killed_20_times_equals_what_was_never_killed(benchmark: str) -> None:
    run = subprocess.run(
        [sys.executable, str(BENCHMARKS / f"{benchmark}.py"), "--kills", "20"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
