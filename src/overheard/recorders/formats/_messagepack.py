"""Safe reading of a model's tensors from an untrusted MessagePack file of Fed-BioMed.

`fedbiomed.common.serializer.Serializer` (6.4) writes a map from names to tensors. A tensor is
`{"__type__": "torch.Tensor", "value": [bytes, dtype, shape]}`; for "np.ndarray" likewise. This
module reads one item at a time, and accepts nothing else. So the memory depends on the size of
a file, not on what it declares.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, final

import msgpack
import numpy as np
import torch
from torch import Tensor

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.layout import checked_file_size
from overheard.archive.weights import Shapes
from overheard.core.errors import TranscriptError
from overheard.disk.limits import ARRAY, refuse_large
from overheard.recorders.exported_weights import (
    MAX_NAME_LENGTH,
    ExportedWeights,
    check_weights,
    not_weights,
    refuse_large_numbers,
    refuse_names,
    refuse_shape,
    unreadable_file,
)

MAX_TENSORS = 100_000
"""Most tensors of a model."""

MAX_LENGTH = 2**31
"""No axis is as long."""

MAX_AXES = 16
"""Most axes of a tensor."""

TENSOR_TYPES = frozenset({"torch.Tensor", "np.ndarray"})

_NUMBERS = re.compile(r"(float(16|32|64)|u?int(8|16|32|64)|bool)")

_UNREADABLE = (ValueError, OSError, MemoryError, OverflowError, msgpack.UnpackException)


def read_messagepack_weights(
    path: Path, folder: Path, shapes: Shapes | None = None, left_out: tuple[str, ...] = ()
) -> ExportedWeights:
    """Read the tensors of one file, which must be finite; nothing is unpickled.

    Args:
        path: the file.
        folder: folder that the path must not leave.
        shapes: shapes of the required tensors, which alone are read; None = all floating-point
            tensors.
        left_out: names of other tensors that the file may contain.

    Raises:
        TranscriptError: if the file is invalid, with what to do.

    """
    size = checked_file_size(path, folder)
    refuse_large(str(path), size, TranscriptError, part=ARRAY)
    try:
        with path.open("rb") as stream:
            arrays = _read_arrays(stream, size)
    except _UNREADABLE as error:
        raise unreadable_file(path, error) from error
    sizes = ((len(one.content), np.dtype(one.dtype).itemsize) for one in arrays.values())
    refuse_large_numbers(path, ((length // size, size) for length, size in sizes))
    refuse_names(path, arrays, shapes, left_out)
    weights, others = dict[str, Tensor](), list[str]()
    for name in arrays if shapes is None else shapes:
        array = arrays[name]
        if not array.dtype.startswith("float"):
            if shapes is not None:
                raise not_weights(path, name, array.dtype)
            others.append(name)
            continue
        refuse_shape(path, name, array.shape, shapes)
        weights[name] = array.tensor()
    return check_weights(path, ExportedWeights(weights, tuple(others)))


@final
@dataclass(frozen=True, slots=True)
class _StoredArray:
    """An array with as many bytes as its type and shape need."""

    content: bytes
    dtype: str
    shape: tuple[int, ...]

    def tensor(self) -> Tensor:
        # Fed-BioMed stores numbers as its machine does: with the smallest byte first.
        numbers = np.frombuffer(self.content, np.dtype(self.dtype).newbyteorder("<"))
        return torch.from_numpy(numbers.astype(self.dtype).reshape(self.shape))


def _read_arrays(stream: BinaryIO, size: int) -> Mapping[str, _StoredArray]:
    """Read a file of this many bytes.

    Raises:
        ValueError: if it is anything but a map from names to tensors.
        msgpack.UnpackException: if it is cut short or damaged.

    """
    # No list, map or extension is read whole: their items are read one by one, and checked.
    unpacker = msgpack.Unpacker(
        stream,
        strict_map_key=True,
        max_buffer_size=max(size, 2**16),
        max_str_len=4 * MAX_NAME_LENGTH,
        max_bin_len=size,
        max_array_len=0,
        max_map_len=0,
        max_ext_len=0,
    )
    count = unpacker.read_map_header()
    if count > MAX_TENSORS:
        raise ValueError(f"it has {count} tensors, at most {MAX_TENSORS} are read")
    arrays = dict[str, _StoredArray]()
    for _ in range(count):
        name = _read_text(unpacker, "a tensor's name")
        if name in arrays:
            raise ValueError(f"it has two tensors {printable_excerpt(repr(name))}")
        try:
            arrays[name] = _read_array(unpacker)
        except ValueError as error:
            raise ValueError(f"{printable_excerpt(repr(name))}: {error}") from error
    if unpacker.tell() != size:
        raise ValueError("it has more content after its tensors")
    return arrays


def _read_array(unpacker: "msgpack.Unpacker") -> _StoredArray:
    if unpacker.read_map_header() != 2 or unpacker.unpack() != "__type__":
        raise ValueError("it is no tensor")
    kind = _read_text(unpacker, "the type")
    if kind not in TENSOR_TYPES or unpacker.unpack() != "value":
        raise ValueError(f"it is a {printable_excerpt(kind)}, no tensor")
    if unpacker.read_array_header() != 3:
        raise ValueError("it has no content, type and shape")
    content, dtype = unpacker.unpack(), _read_text(unpacker, "the type of its numbers")
    axes = unpacker.read_array_header()
    if axes > MAX_AXES:
        raise ValueError(f"it has {axes} axes, at most {MAX_AXES} are read")
    shape = tuple(_read_length(unpacker) for _ in range(axes))
    if not isinstance(content, bytes) or not _NUMBERS.fullmatch(dtype):
        raise ValueError(f"{printable_excerpt(dtype)} are no plain numbers")
    if any(length >= MAX_LENGTH for length in shape):
        raise ValueError(f"a length of its shape is {MAX_LENGTH} or more")
    if math.prod(shape) * np.dtype(dtype).itemsize != len(content):
        raise ValueError(f"shape {shape} of {dtype} does not fit its {len(content)} bytes")
    return _StoredArray(content, dtype, shape)


def _read_text(unpacker: "msgpack.Unpacker", what: str) -> str:
    text = unpacker.unpack()
    if not isinstance(text, str):
        raise ValueError(f"{what} is no text")
    return text


def _read_length(unpacker: "msgpack.Unpacker") -> int:
    length = unpacker.unpack()
    if not isinstance(length, int) or isinstance(length, bool) or length < 0:
        raise ValueError("a length of its shape is no number of 0 or more")
    return length
