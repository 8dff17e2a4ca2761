from pathlib import Path

import numpy as np
import pytest

from overheard.archive.past_cache import BLOCK, STAGE, PastCache


@pytest.mark.parametrize("size", [0, 1, BLOCK, BLOCK + 1, STAGE - 1, STAGE, 2 * STAGE + 5])
def test_what_is_written_stands_there_to_the_byte_whatever_its_size(
    tmp_path: Path, size: int
) -> None:
    content = np.random.default_rng(0).bytes(size)
    cache = PastCache()
    (tmp_path / "x").write_bytes(b"much that was there before" * BLOCK)
    for pieces in ((content,), (b"123", memoryview(content), b"", b"4")):
        cache.write(tmp_path / "x", pieces)
        assert (tmp_path / "x").read_bytes() == b"".join(pieces)


def test_where_the_disk_cannot_do_that_files_are_written_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = PastCache()
    # Sizes that are no multiple of a disk's block are refused as an unfit disk refuses all.
    monkeypatch.setattr("overheard.archive.past_cache.BLOCK", 1)
    for content in (b"first", b"second"):
        cache.write(tmp_path / "x", (content,))
        assert (tmp_path / "x").read_bytes() == content


def test_a_disk_that_refuses_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        PastCache().write(tmp_path, (b"x",))
