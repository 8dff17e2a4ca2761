"""Reads NumPy arrays from the members of an untrusted `.npz` file.

NumPy's reader allocates memory for a header before it checks its length. This one parses
nothing as Python. Callers pass the `read` method of an open file, and compare the array's
header with the zip directory before they read the content.
"""

import lzma
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Shaped

MAX_HEADER_BYTES = 2**14
"""Longest header of an array in bytes; headers of plain arrays take about a hundred."""

CHUNK_BYTES = 2**20
"""Bytes to unpack at a time."""

MAX_LIST_BYTES = 2**24
"""Most bytes of the list of arrays, which are enough for 100,000 names of 100 letters."""

ZIP_FAILURES = (
    OSError,
    EOFError,
    KeyError,
    ValueError,
    MemoryError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)
"""The exceptions that Python's zip reader and this module raise for a damaged file."""

ReadBytes = Callable[[int], bytes]
"""Returns this number of next bytes; fewer only at the end."""

_HEADER = re.compile(
    rb"\{'descr': '([^']{1,99})', 'fortran_order': (True|False), "
    rb"'shape': \(([0-9L, ]*)\), *\} *\n?"
)


@final
class _BoundedFile(FileIO):
    """A file that never reads much at once.

    Python's zip reader reads the list of arrays in one piece, and makes an object of 600 bytes
    for each of its entries, of which 47 bytes are in the file.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        """Read this many bytes.

        Raises:
            ValueError: if these are more than a list of arrays has.

        """
        if size is not None and size > MAX_LIST_BYTES:
            raise ValueError(
                f"its list of arrays has {size} bytes, at most {MAX_LIST_BYTES} are read"
            )
        return super().read(size)


@contextmanager
def open_arrays(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an `.npz` file; raises one of `ZIP_FAILURES` if it is none, or has many arrays."""
    with _BoundedFile(path) as file, zipfile.ZipFile(file) as archive:
        yield archive


@final
@dataclass(frozen=True, slots=True)
class ArrayHeader:
    """The header of an array; untrusted until it is compared with the file.

    Args:
        dtype: NumPy's type string, such as `<f4`; any text of up to 99 characters: compare it
            with the expected ones before passing it to NumPy.
        is_fortran: whether the first axis varies fastest, not the last.
        shape: lengths of 0 or more, without an upper bound.
        start: offset of the content in bytes.

    """

    dtype: str
    is_fortran: bool
    shape: tuple[int, ...]
    start: int

    @property
    def count(self) -> int:
        """The number of elements according to the header."""
        return math.prod(self.shape)


def read_header(read: ReadBytes) -> ArrayHeader:
    """Read the header of an array, so that `read` is at its content.

    Raises:
        ValueError: if it is no array of one plain type, or its header is too long.

    """
    magic = read(8)
    if magic[:6] != b"\x93NUMPY" or magic[6:] not in (b"\x01\x00", b"\x02\x00"):
        raise ValueError("it is no array of format 1 or 2")
    is_format_2 = magic[6] == 2
    length = int.from_bytes(read(4 if is_format_2 else 2), "little")
    if length > MAX_HEADER_BYTES:
        raise ValueError(f"its header has {length} bytes, at most {MAX_HEADER_BYTES} are read")
    match = _HEADER.fullmatch(read(length))
    if match is None:
        raise ValueError("it is no array of numbers or strings of one type")
    # Python 2 wrote some lengths as 3L.
    parts = [part.strip() for part in match[3].decode().split(",")]
    return ArrayHeader(
        match[1].decode("latin-1"),
        match[2] == b"True",
        tuple(int(part.removesuffix("L")) for part in parts if part),
        (12 if is_format_2 else 10) + length,
    )


def read_content(
    read: ReadBytes, header: ArrayHeader, dtype: np.dtype[np.generic]
) -> Shaped[np.ndarray, "..."]:
    """Read the content of an array, up to the end, where a zip reader verifies its checksum.

    Args:
        read: positioned after the header.
        header: already compared with the file: its memory is allocated first.
        dtype: the NumPy type of `header.kind`.

    Raises:
        ValueError: if there are more or fewer elements than in the header.

    """
    numbers = np.empty(header.count, dtype)
    content, done = numbers.view(np.uint8), 0
    while part := read(CHUNK_BYTES):
        if done + len(part) > len(content):
            raise ValueError("it is longer than its header says")
        content[done : done + len(part)] = np.frombuffer(part, np.uint8)
        done += len(part)
    if done != len(content):
        raise ValueError("it was cut short")
    return numbers.reshape(header.shape, order="F" if header.is_fortran else "C")
