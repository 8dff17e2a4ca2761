"""Each file is read once for its digest, and again whenever it may have changed."""

import os
import threading
import time
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

import pytest

from overheard.disk import digests
from overheard.disk.digests import (
    CLOCK_TICK,
    is_store_trusted,
    read_ahead,
    sha256_of,
    trust_store,
)


def test_a_file_that_stays_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    later = time.time() + 2 * CLOCK_TICK
    monkeypatch.setattr(digests.time, "time", lambda: later)
    read = list[object]()
    whole = digests.file_digest

    def count(*arguments: object) -> object:
        read.append(arguments)
        return whole(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(digests, "file_digest", count)
    for _ in range(3):
        assert sha256_of(path) == sha256(b"abc").hexdigest()
    assert len(read) == 1
    assert sha256_of(path, begin=1) == sha256(b"bc").hexdigest()
    path.write_bytes(b"abcd")
    assert sha256_of(path) == sha256(b"abcd").hexdigest()
    os.utime(path, ns=(0, 0))
    other = tmp_path / "other"
    other.write_bytes(b"abce")
    os.utime(other, ns=(0, 0))
    other.replace(path)
    assert sha256_of(path) == sha256(b"abce").hexdigest()


def test_a_file_that_changed_just_now_is_read_each_time(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"a", b"b", b"c"):
        path.write_bytes(content)  # a clock may tick only each 10 ms
        assert sha256_of(path) == sha256(content).hexdigest()


def test_a_file_that_is_read_ahead_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{number}" for number in range(3)]
    for path in paths[1:]:
        path.write_bytes(path.name.encode() * 1000)
    time.sleep(2 * CLOCK_TICK)
    read, whole, begun = list[object](), digests.file_digest, threading.Event()

    def slowly(file: BinaryIO, name: str) -> object:
        read.append(file.name)
        begun.set()
        time.sleep(0.02)
        return whole(file, name)

    monkeypatch.setattr(digests, "file_digest", slowly)
    read_ahead(paths)  # the first one does not exist
    begun.wait()
    found = [sha256_of(path) for path in paths[1:]]
    assert found == [sha256(path.read_bytes()).hexdigest() for path in paths[1:]]
    assert sorted(read) == [str(path) for path in paths[1:]]
    with pytest.raises(FileNotFoundError):
        sha256_of(paths[0])


def test_trust_is_inherited_by_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(digests.TRUST_VARIABLE, "0")
    assert not is_store_trusted()
    trust_store()
    assert is_store_trusted()
    assert os.environ[digests.TRUST_VARIABLE] == "1"


def test_a_pipe_and_a_file_of_holes_are_refused_rather_than_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no regular file"):
        sha256_of(tmp_path / "pipe")
    (tmp_path / "holes").touch()
    os.truncate(tmp_path / "holes", 2**40)
    with pytest.raises(OSError, match="far more bytes than it stores"):
        sha256_of(tmp_path / "holes")
