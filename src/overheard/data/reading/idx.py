"""A reader of the IDX format, in which MNIST and similar data sets are published."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from overheard.core.errors import DataError
from overheard.data.reading.arrays import MAX_SIZE

MAGIC = 0x0800
"""Two zero bytes, then 8 for unsigned bytes; the number of axes is added."""


def read_idx(path: Path, axes: int) -> UInt8[np.ndarray, "..."]:
    """Read a gzipped IDX file of bytes with this number of axes.

    The file has 4 bytes magic, a big-endian length of 4 bytes per axis, then the numbers.

    Raises:
        DataError: if it is no such file, or its length differs from its header.

    """
    try:
        with gzip.open(path) as stream:
            (magic, *shape) = struct.unpack(f">{1 + axes}I", stream.read(4 + 4 * axes))
            length = math.prod(shape)
            if magic != MAGIC + axes or length > MAX_SIZE:
                raise DataError(
                    f"{path} is not an IDX file of bytes with {axes} axes: get a new copy"
                )
            # One more byte than the header says is enough to see that the file is too long.
            content = stream.read(length + 1)
    except (OSError, EOFError, zlib.error, struct.error) as failure:
        raise DataError(
            f"{path} cannot be read as gzipped IDX ({failure}): get a new copy"
        ) from failure
    if len(content) != length:
        raise DataError(f"{path} does not have the length in its header: get a new copy")
    return np.frombuffer(content, np.uint8).reshape(shape)
