from pathlib import Path

import numpy as np
import pytest

from overheard.archive.direct_writer import BLOCK_BYTES, BUFFER_BYTES, DirectWriter


@pytest.mark.parametrize(
    "size",
    [0, 1, BLOCK_BYTES, BLOCK_BYTES + 1, BUFFER_BYTES - 1, BUFFER_BYTES, 2 * BUFFER_BYTES + 5],
)
def test_files_of_any_size_are_written_exactly(tmp_path: Path, size: int) -> None:
    content = np.random.default_rng(0).bytes(size)
    writer = DirectWriter()
    (tmp_path / "x").write_bytes(b"longer previous content" * BLOCK_BYTES)
    for chunks in ((content,), (b"123", memoryview(content), b"", b"4")):
        writer.write(tmp_path / "x", chunks)
        assert (tmp_path / "x").read_bytes() == b"".join(chunks)


def test_without_direct_io_files_are_written_normally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = DirectWriter()
    # Unaligned sizes fail in the same way as a disk without direct I/O.
    monkeypatch.setattr("overheard.archive.direct_writer.BLOCK_BYTES", 1)
    for content in (b"first", b"second"):
        writer.write(tmp_path / "x", (content,))
        assert (tmp_path / "x").read_bytes() == content


def test_other_errors_are_raised(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        DirectWriter().write(tmp_path, (b"x",))
