"""Decoding of Flower's arrays into tensors, without unpickling."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, final

import numpy as np
import torch
from numpy.lib import format as npy
from torch import Tensor

from overheard.archive.tensor_records import group_by_record
from overheard.recorders.replies.differences import (
    ReplyKind,
    ReplyUpdate,
    Scales,
    UnstorableError,
    list_names,
    read_update,
)

NPY_SERIALIZATION = "numpy.ndarray"
"""Flower's name for arrays that are serialised as .npy files."""

BFLOAT16 = "bfloat16"
"""NumPy has no bfloat16, so an .npy file stores such numbers as two opaque bytes."""

TEXT_BYTES = 1000
"""Bytes that are looked at to tell text from other bytes."""

# Any: the file determines the dtype.
_Numbers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class PackedArray:
    """A serialised array."""

    dtype: str
    stype: str
    data: bytes


DEFAULT_RECORD = "arrays"
"""The name under which Flower's strategies send the model."""

PackedArrays = Mapping[str, PackedArray]
"""The arrays of one message, by name."""


def count_bytes(parts: PackedArrays) -> int:
    """Count the bytes of these arrays."""
    return sum(len(part.data) for part in parts.values())


@final
class ArrayDecoder:
    """Decodes the arrays of one run into tensors.

    A tensor that is not floating-point when it is first sent is omitted from then on, as
    Flower's averages turn counters, such as that of `torch.nn.BatchNorm2d`, into floats.

    Args:
        left_out: names of tensors already omitted, for a resumed run.

    """

    def __init__(self, left_out: Iterable[str] = ()) -> None:
        """Begin a run."""
        self._is_kept = dict.fromkeys(left_out, False)
        self._start: tuple[PackedArrays, dict[str, Tensor]] | None = None

    def decode_model(self, parts: PackedArrays) -> dict[str, Tensor]:
        """Decode a broadcast model.

        An omitted tensor is reported once, by an empty integer tensor under its name.

        Raises:
            ValueError: if an array does not contain plain numbers.

        """
        tensors = {}
        for name, part in parts.items():
            numbers = _unpack(name, part)
            is_new = name not in self._is_kept
            if self._is_kept.setdefault(name, _is_floating(numbers)):
                tensors[name] = _tensor(_copy(numbers), part)
            elif is_new:
                tensors[name] = torch.empty(0, dtype=torch.int64)
        return tensors

    def decode_update(
        self,
        sent: PackedArrays,
        start: PackedArrays,
        kind: ReplyKind = "weights",
        rate: float | None = None,
        scales: Scales | None = None,
    ) -> ReplyUpdate:
        """Decode a reply, and return the update that it means; see `read_update`.

        Records that were not broadcast are returned as they were sent; broadcast records that
        are not in the reply are left out.

        Raises:
            UnstorableError: if the reply has no record of the broadcast, or arrays that are no
                .npy files, or as `read_update`.
            ValueError: if an array does not contain plain numbers.

        """
        records = group_by_record(sent).keys() & group_by_record(start).keys()
        if not records:
            raise UnstorableError(
                "it has other tensors than the broadcast model: "
                f"{list_names(tuple(sent))} in place of {list_names(tuple(start))}",
                "weights",
            )
        base = {
            name: one
            for name, one in self._decode_start(start).items()
            if _record(name) in records
        }
        reply = self._decode_kept(
            {name: part for name, part in sent.items() if _record(name) in records}
        )
        update = read_update(reply, base, kind, rate, scales)
        extra = {name: part for name, part in sent.items() if _record(name) not in records}
        return replace(update, delta={**update.delta, **self._decode_extra(extra)})

    def _decode_start(self, start: PackedArrays) -> dict[str, Tensor]:
        """Decode a broadcast model; the last one is kept, as many replies begin from it."""
        if self._start is None or self._start[0] is not start:
            self._start = start, self._decode_kept(start)
        return self._start[1]

    def _decode_kept(self, parts: PackedArrays) -> dict[str, Tensor]:
        """Decode all arrays but those that are omitted."""
        return {
            name: _tensor(_copy(_unpack(name, part)), part)
            for name, part in parts.items()
            if self._is_kept.get(name, True)
        }

    def _decode_extra(self, extra: PackedArrays) -> dict[str, Tensor]:
        """Decode the floating-point arrays of records that were not broadcast."""
        numbers = {name: _unpack(name, part) for name, part in extra.items()}
        return {
            name: _tensor(_copy(one), extra[name])
            for name, one in numbers.items()
            if self._is_kept.setdefault(name, _is_floating(one))
        }


def align_records(sent: PackedArrays, record: str, start: PackedArrays) -> PackedArrays:
    """Return the arrays of a reply under the names that they have in the broadcast.

    Arrays are named `record/tensor` if a message has several records. A reply with fewer or
    more records than the broadcast thus has other names. Of several records that fit, it is
    the one of the same name, or else Flower's own.

    Args:
        sent: the arrays of the reply.
        record: the name of its record; "" = it has several, or the name is unknown.
        start: the arrays of the broadcast.

    """
    if sent.keys() == start.keys():
        return sent
    if record:
        chosen = _choose_record(start, set(sent), record)
        return {f"{chosen}/{name}": part for name, part in sent.items()} if chosen else sent
    chosen = _choose_record(sent, set(start))
    return {name.removeprefix(f"{chosen}/"): part for name, part in sent.items()}


def _choose_record(parts: PackedArrays, names: set[str], wanted: str = DEFAULT_RECORD) -> str:
    """Return the record that has exactly these names; "" if there is none, or no clear one."""
    fitting = [
        record for record, found in group_by_record(parts).items() if record and found == names
    ]
    for record in (wanted, DEFAULT_RECORD):
        if record in fitting:
            return record
    return fitting[0] if len(fitting) == 1 else ""


def _unpack(name: str, part: PackedArray) -> _Numbers:
    """Return the array without copying; bfloat16 is widened to float32.

    `numpy.load` would copy. Nothing is unpickled: arrays of objects are refused.
    """
    if part.stype != NPY_SERIALIZATION:
        raise UnstorableError(
            f"{name!r} is serialized as {part.stype[:40]!r}, not {NPY_SERIALIZATION!r}",
            "text" if _is_text(part.data) else "bytes",
        )
    file = BytesIO(part.data)
    # The header is untrusted text, and its parsers may raise any error.
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, is_column_major, dtype = read(file)
    except Exception as error:
        raise ValueError(f"{name!r} is no valid .npy file") from error
    if dtype.hasobject:
        raise ValueError(f"{name!r} contains Python objects, which are never unpickled")
    count = 1
    for length in shape:
        count *= length
    offset = file.tell()
    if min(shape, default=0) < 0 or len(part.data) - offset != count * dtype.itemsize:
        raise ValueError(f"{name!r} has {len(part.data) - offset} bytes for {shape} {dtype}")
    numbers: _Numbers = np.frombuffer(part.data, dtype, count, offset)
    if _is_bfloat16(part) and dtype.itemsize == 2:
        numbers = (numbers.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return numbers.reshape(shape, order="F" if is_column_major else "C")


def _is_text(data: bytes) -> bool:
    """Return whether these bytes begin with printable text, such as trees in JSON."""
    start = data[:TEXT_BYTES].decode(errors="ignore")
    return bool(start) and all(one.isprintable() or one.isspace() for one in start)


def _copy(numbers: _Numbers) -> _Numbers:
    """Copy numbers, in the order of bytes of this machine."""
    return np.array(numbers, numbers.dtype.newbyteorder("="))


def _record(name: str) -> str:
    """Return the record of a tensor, as `group_by_record` does; "" = it has none."""
    record, has_record, _ = name.partition("/")
    return record if has_record else ""


def _tensor(numbers: _Numbers, part: PackedArray) -> Tensor:
    """Make a tensor of an array that is not shared, with the dtype of the serialised array."""
    if not numbers.flags.c_contiguous:
        numbers = np.ascontiguousarray(numbers).reshape(numbers.shape)
    tensor = torch.from_numpy(numbers)
    return tensor.to(torch.bfloat16) if _is_bfloat16(part) else tensor


def _is_bfloat16(part: PackedArray) -> bool:
    return part.dtype == BFLOAT16


def _is_floating(numbers: _Numbers) -> bool:
    return numbers.dtype.kind == "f" and numbers.dtype.itemsize <= 8
