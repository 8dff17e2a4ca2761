from pathlib import Path

import numpy as np
import pytest

from overheard.disk.direct_writer import BLOCK_BYTES, BUFFER_BYTES, DirectWriter


@pytest.mark.parametrize(
    "size",
    [0, 1, BLOCK_BYTES, BLOCK_BYTES + 1, BUFFER_BYTES - 1, BUFFER_BYTES, 2 * BUFFER_BYTES + 5],
)
def test_files_of_any_size_are_written_exactly(tmp_path: Path, size: int) -> None:
    content = np.random.default_rng(0).bytes(size)
    writer = DirectWriter()
    for name, written in (("x", content), ("y", content[::-1])):
        writer.write(tmp_path / name, written)
        assert (tmp_path / name).read_bytes() == written


def test_without_direct_io_files_are_written_normally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = DirectWriter()
    # Unaligned sizes fail in the same way as a disk without direct I/O.
    monkeypatch.setattr("overheard.disk.direct_writer.BLOCK_BYTES", 1)
    for content in (b"first", b"second"):
        path = tmp_path / content.decode()
        writer.write(path, content)
        assert path.read_bytes() == content


def test_a_file_that_exists_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        DirectWriter().write(tmp_path / "x", b"new")
    assert (tmp_path / "x").read_bytes() == b"old"


def test_other_errors_are_raised(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        DirectWriter().write(tmp_path / "missing" / "x", b"x")
