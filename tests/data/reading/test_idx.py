import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from overheard.core.errors import DataError
from overheard.data.reading.mnist_files import read_idx
from overheard.disk.limits import VARIABLE

Write = Callable[[Path, np.ndarray], Path]


def test_refuses_a_file_with_another_number_of_axes(tmp_path: Path, write_idx: Write) -> None:
    path = write_idx(tmp_path / "labels.gz", np.arange(20))
    with pytest.raises(DataError, match=r"labels.gz is not an IDX file of bytes with 3 axes"):
        read_idx(path, axes=3)


@pytest.mark.parametrize(
    ("length", "content"), [(5, b"1234"), (3, b"1234"), (2**22, b"1234"), (2**20, b"")]
)
def test_refuses_a_file_whose_length_differs_from_its_header(
    tmp_path: Path, length: int, content: bytes
) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(struct.pack(">2I", 0x0801, length) + content))
    with pytest.raises(DataError, match=r"a.gz .* get a new copy"):
        read_idx(path, axes=1)


def test_counts_the_memory_of_converted_pixels(
    tmp_path: Path, write_idx: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_idx(tmp_path / "a.gz", np.arange(200))
    monkeypatch.setenv(VARIABLE, "1599")
    with pytest.raises(DataError, match=r"a.gz takes 1600 bytes .* --max-unpacked 1GB"):
        read_idx(path, axes=1)
    monkeypatch.setenv(VARIABLE, "1600")
    assert read_idx(path, axes=1).tolist() == list(range(200))


def test_refuses_truncated_files_and_other_formats(tmp_path: Path, write_idx: Write) -> None:
    whole = write_idx(tmp_path / "a.gz", np.arange(100)).read_bytes()
    for number, content in enumerate((b"", b"no gzip", whole[:5], whole[:-20])):
        path = tmp_path / f"{number}.gz"
        path.write_bytes(content)
        with pytest.raises(DataError, match=f"{number}.gz cannot be read as gzipped IDX"):
            read_idx(path, axes=1)
