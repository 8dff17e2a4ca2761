import os
from pathlib import Path

import numpy as np
import pytest

from overheard.disk.direct_writer import BLOCK_BYTES, BUFFER_BYTES, DirectWriter


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
