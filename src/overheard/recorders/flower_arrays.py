"""Arrays as Flower sends them, turned into tensors without unpickling anything."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, final

import numpy as np
import torch
from flwr.app import ArrayRecord, RecordDict
from numpy.lib import format as npy
from torch import Tensor

SERIALIZED = "numpy.ndarray"
"""How Flower says that an array's bytes are those of an .npy file."""

BFLOAT16 = "bfloat16"
"""NumPy has no such numbers: an .npy file holds them as two bytes without a meaning."""

# Numbers of any kind; which, only the file says.
_Numbers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Packed:
    """One array as it travelled."""

    dtype: str
    stype: str
    data: bytes


Parts = Mapping[str, Packed]
"""The arrays of one message, by name."""


def parts_of(content: RecordDict) -> dict[str, Packed]:
    """The arrays in a message, as they are now: strategies put others in their place later.

    Names are those of the one record of arrays; where there are several, `record/name`.
    """
    records: Mapping[str, ArrayRecord] = content.array_records
    alone = len(records) == 1
    return {
        name if alone else f"{key}/{name}": Packed(array.dtype, array.stype, array.data)
        for key, record in records.items()
        for name, array in record.items()
    }


def size_of(parts: Parts) -> int:
    """Bytes that these arrays take."""
    return sum(len(part.data) for part in parts.values())


@final
class Decoder:
    """Turns the arrays of one run into tensors.

    A tensor that is no floating-point number the first time that it is sent is left out from
    then on: Flower's averages make floats of counters such as `num_batches_tracked`.

    Args:
        left_out: names of tensors that were, for a run that is gone on with.

    """

    def __init__(self, left_out: Iterable[str] = ()) -> None:
        """Begin with a run of which nothing else was sent."""
        self._is_kept = dict.fromkeys(left_out, False)

    def model(self, parts: Parts) -> dict[str, Tensor]:
        """The model that was sent.

        What is left out is told once, by a tensor of whole numbers under its name.

        Raises:
            ValueError: if it holds what is no plain array of numbers.

        """
        held = {}
        for name, part in parts.items():
            numbers = _unpacked(name, part)
            is_new = name not in self._is_kept
            if self._is_kept.setdefault(name, _is_floating(numbers)):
                held[name] = _tensor(np.array(numbers, numbers.dtype.newbyteorder("=")), part)
            elif is_new:
                held[name] = torch.empty(0, dtype=torch.int64)
        return held

    def change(self, sent: Parts, start: Parts) -> dict[str, Tensor]:
        """What a sender changed of the model that it had been sent.

        In the precision in which it was sent back: nearby floats are subtracted exactly.

        Raises:
            ValueError: if it sent other tensors back, or what is no plain array of numbers.

        """
        if sent.keys() != start.keys():
            raise ValueError(
                f"it sent {_told(set(sent) - set(start))} that it was not sent, and not "
                f"{_told(set(start) - set(sent))}"
            )
        held = {}
        for name, part in start.items():
            if not self._is_kept.get(name, True):
                continue
            before, after = _unpacked(name, part), _unpacked(name, sent[name])
            if before.shape != after.shape:
                raise ValueError(
                    f"{name!r} came back as {after.shape} and was sent as {before.shape}"
                )
            if not _is_floating(before) and not _is_floating(after):
                continue
            # Of infinities the difference is NaN, which is refused where it is stored.
            with np.errstate(all="ignore"):
                change = np.subtract(after, before)
                exact = after if _is_floating(after) else before
                change = np.asarray(change, exact.dtype.newbyteorder("="))
            held[name] = _tensor(change, sent[name] if exact is after else part)
        return held


def _unpacked(name: str, part: Packed) -> _Numbers:
    """The numbers, of which nothing is copied but bfloat16, which is widened to float32.

    `numpy.load` would copy all. Nothing here can unpickle: an array of objects is refused.
    """
    if part.stype != SERIALIZED:
        raise ValueError(f"{name!r} is serialized as {part.stype[:40]!r}, not {SERIALIZED!r}")
    file = BytesIO(part.data)
    # The header is text from outside, and its parsers raise what they like.
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, is_column_major, dtype = read(file)
    except Exception as error:
        raise ValueError(f"{name!r} holds no .npy file") from error
    if dtype.hasobject:
        raise ValueError(f"{name!r} holds Python objects, which are never unpickled")
    count = 1
    for length in shape:
        count *= length
    offset = file.tell()
    if min(shape, default=0) < 0 or len(part.data) - offset != count * dtype.itemsize:
        raise ValueError(f"{name!r} holds {len(part.data) - offset} bytes for {shape} {dtype}")
    numbers: _Numbers = np.frombuffer(part.data, dtype, count, offset)
    if _is_bfloat16(part) and dtype.itemsize == 2:
        numbers = (numbers.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return numbers.reshape(shape, order="F" if is_column_major else "C")


def _tensor(numbers: _Numbers, part: Packed) -> Tensor:
    """These numbers, which are ours to give away, in the kind in which the part was sent."""
    if not numbers.flags.c_contiguous:
        numbers = np.ascontiguousarray(numbers).reshape(numbers.shape)
    tensor = torch.from_numpy(numbers)
    return tensor.to(torch.bfloat16) if _is_bfloat16(part) else tensor


def _is_bfloat16(part: Packed) -> bool:
    return part.dtype == BFLOAT16


def _is_floating(numbers: _Numbers) -> bool:
    return numbers.dtype.kind == "f" and numbers.dtype.itemsize <= 8


def _told(names: set[str]) -> str:
    """A few of the names, which come from outside."""
    if not names:
        return "none"
    first = ", ".join(repr(name[:60]) for name in sorted(names)[:3])
    return f"{first}{' and more' if len(names) > 3 else ''}"
