"""Reads arrays as an `.npz` holds them, from bytes that nobody vouches for.

NumPy's own reader makes room for a header before it asks how long it is. Here nothing is
opened, and nothing parsed as Python: whoever has a file open hands its `read` in, and holds
what an array says of itself against what the zip says before it reads on.
"""

import lzma
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Shaped

LONGEST_HEADER = 2**14
"""Bytes of an array's header at most; those of plain numbers take some hundred."""

CHUNK = 2**20
"""Bytes that are unpacked together."""

SMALL = 2**26
"""Bytes that a file may unpack to whatever its own size."""

MOST_UNPACKED = 100
"""Times its own size that a larger one may unpack to. Trained weights hardly shrink, images
some ten times; what unpacks to a thousand times its size is made to fill a memory."""

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
"""What Python's reader of zips, and this one, raise where a file is damaged."""

Read = Callable[[int], bytes]
"""Gives so many of the next bytes; fewer only at the end."""

_HEADER = re.compile(
    rb"\{'descr': '([^']{1,99})', 'fortran_order': (True|False), "
    rb"'shape': \(([0-9L, ]*)\), *\} *\n?"
)


@final
@dataclass(frozen=True, slots=True)
class ArrayHeader:
    """What an array says of itself; true of it only where the file bears it out.

    Args:
        kind: what its numbers are, by NumPy's letters, such as `<f4`; any text of up to 99
            characters: hold it against those that are wanted before NumPy is asked what it is.
        is_fortran: whether its first axis is the fastest, not its last.
        shape: each from 0 on, and as large as whoever wrote it liked.
        start: bytes before its numbers.

    """

    kind: str
    is_fortran: bool
    shape: tuple[int, ...]
    start: int

    @property
    def count(self) -> int:
        """How many numbers there are, if all is as it says."""
        return math.prod(self.shape)


def read_header(read: Read) -> ArrayHeader:
    """What the array says of itself; its numbers are what is read next.

    Raises:
        ValueError: if it is no array of one plain kind, or its header is too long.

    """
    magic = read(8)
    if magic[:6] != b"\x93NUMPY" or magic[6:] not in (b"\x01\x00", b"\x02\x00"):
        raise ValueError("it is no array of format 1 or 2")
    wide = magic[6] == 2
    length = int.from_bytes(read(4 if wide else 2), "little")
    if length > LONGEST_HEADER:
        raise ValueError(f"its header has {length} bytes, {LONGEST_HEADER} at most are read")
    said = _HEADER.fullmatch(read(length))
    if said is None:
        raise ValueError("it holds something else than numbers or words of one kind")
    # Python 2 wrote some lengths as 3L.
    parts = [part.strip() for part in said[3].decode().split(",")]
    return ArrayHeader(
        said[1].decode("latin-1"),
        said[2] == b"True",
        tuple(int(part.removesuffix("L")) for part in parts if part),
        (12 if wide else 10) + length,
    )


def read_content(
    read: Read, header: ArrayHeader, kind: np.dtype[np.generic]
) -> Shaped[np.ndarray, "..."]:
    """The numbers after this header, to the end of what there is.

    To its very end, where a zip compares the checksum.

    Args:
        read: from behind the header on.
        header: borne out by the file: the memory that it asks for is taken first.
        kind: what NumPy calls `header.kind`.

    Raises:
        ValueError: if there are more or fewer.

    """
    numbers = np.empty(header.count, kind)
    content, done = numbers.view(np.uint8), 0
    while part := read(CHUNK):
        if done + len(part) > len(content):
            raise ValueError("it is longer than its header says")
        content[done : done + len(part)] = np.frombuffer(part, np.uint8)
        done += len(part)
    if done != len(content):
        raise ValueError("it was cut short")
    return numbers.reshape(header.shape, order="F" if header.is_fortran else "C")


def is_bomb(unpacked: int, size: int) -> bool:
    """Whether a file of this size that unpacks to so many bytes was made to fill a memory.

    >>> is_bomb(10**9, 10**6), is_bomb(10**9, 10**8), is_bomb(10**6, 10)
    (True, False, False)
    """
    return unpacked > max(SMALL, MOST_UNPACKED * size)
