import errno
import os
from pathlib import Path

import pytest

from overheard.archive.atomic import (
    flush_files,
    partial_path,
    write_bytes,
    write_text,
    write_unflushed,
)
from overheard.core.errors import OutputError


def refuse_with(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)


def test_writes_text_as_utf_8_and_creates_parent_folders(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b" / "c.txt", "größer\n")
    assert (tmp_path / "a" / "b" / "c.txt").read_bytes() == "größer\n".encode()


def test_leaves_nothing_beside_the_file(tmp_path: Path) -> None:
    write_bytes(tmp_path / "x", b"1")
    write_bytes(tmp_path / "x", b"2")
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
def test_a_failed_write_leaves_the_old_file_and_names_path_and_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    write_bytes(tmp_path / "x", b"old")
    refuse_with(number, monkeypatch)
    with pytest.raises(OutputError, match=remedy) as caught:
        write_bytes(tmp_path / "x", b"new")
    assert str(tmp_path / "x") in str(caught.value)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_a_full_disk_leaves_no_partial_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_with(errno.ENOSPC, monkeypatch)
    with pytest.raises(OutputError):
        write_bytes(tmp_path / "x", b"new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_device_without_space_is_reported_as_a_full_disk(tmp_path: Path) -> None:
    # The partial file is a link to a device without room.
    partial_path(tmp_path / "x").symlink_to("/dev/full")
    with pytest.raises(OutputError, match="the disk is full"):
        write_bytes(tmp_path / "x", b"new")
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_is_raised_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_bytes(tmp_path / "x", b"new")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_a_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="there is a file where a folder is needed"):
        write_bytes(tmp_path / "file" / "x", b"")
    with pytest.raises(OutputError, match="there is a file where a folder is needed"):
        write_bytes(tmp_path / "file" / "deeper" / "x", b"")


def test_a_folder_in_place_of_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(OutputError, match="there is a folder where a file is needed"):
        write_bytes(tmp_path / "x", b"")


def test_unflushed_files_are_complete_and_fail_like_others(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(40)]
    for path in paths:
        write_unflushed(path, path.name.encode())
    flush_files(paths)
    flush_files([])
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {b"%d" % n for n in range(40)}
    with pytest.raises(OutputError, match="there is a file where a folder is needed"):
        write_unflushed(tmp_path / "1" / "x", b"")


def test_a_failed_flush_is_reported_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_unflushed(tmp_path / "x", b"1")
    refuse_with(errno.ENOSPC, monkeypatch)
    with pytest.raises(OutputError, match="x: the disk is full"):
        flush_files([tmp_path / "x"])
