"""Reads the IDX format, in which MNIST and its look-alikes are published."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from overheard.core.errors import DataError
from overheard.data.reading.arrays import LARGEST

MAGIC = 0x0800
"""Two zero bytes, then 8 for unsigned bytes; the number of axes is added."""


def read_idx(path: Path, axes: int) -> UInt8[np.ndarray, "..."]:
    """The bytes of a gzipped IDX file with so many axes.

    The file is: 4 bytes magic, 4 bytes big-endian an axis for its length, then the numbers.

    Raises:
        DataError: if it is anything else, or longer or shorter than it says.

    """
    try:
        with gzip.open(path) as stream:
            (magic, *shape) = struct.unpack(f">{1 + axes}I", stream.read(4 + 4 * axes))
            wanted = math.prod(shape)
            if magic != MAGIC + axes or wanted > LARGEST:
                raise DataError(
                    f"{path} is no IDX file of bytes with {axes} axes: get a new copy"
                )
            # One byte more than promised is enough to tell that the promise is broken.
            content = stream.read(wanted + 1)
    except (OSError, EOFError, zlib.error, struct.error) as failure:
        raise DataError(
            f"{path} cannot be read as gzipped IDX ({failure}): get a new copy"
        ) from failure
    if len(content) != wanted:
        raise DataError(f"{path} is not as long as its header says: get a new copy")
    return np.frombuffer(content, np.uint8).reshape(shape)
