"""The header with which safetensors writes tensors, and where each of them then is."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import torch

HEADER_ALIGNMENT = 8
"""The header's length is padded to a multiple of this number of bytes."""

DTYPE_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
}
"""The format's names of float types, in the order in which it stores their tensors."""

ShapeItems = tuple[tuple[str, tuple[int, ...]], ...]
"""The name and shape of each tensor."""

CACHED_LAYOUTS = 64
"""The most layouts to keep, those that were asked for last."""


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """How safetensors writes tensors of one type.

    Args:
        head: what the file begins with: the length of its header, and the header.
        dtype: the type of all numbers.
        numbers: how many numbers follow the head.
        starts: the number of numbers before each tensor, by name.

    """

    head: bytes
    dtype: torch.dtype
    numbers: int
    starts: Mapping[str, int]


@lru_cache(CACHED_LAYOUTS)
def layouts_of_shapes(
    shapes: ShapeItems,
) -> tuple[TensorLayout, ...]:
    """Return the layout of tensors of these shapes for each float type, the usual one first."""
    names = sorted((name for name, _ in shapes), key=str.encode)
    shape_of, starts, end = dict(shapes), dict[str, int](), 0
    for name in names:
        starts[name] = end
        end += prod(shape_of[name])
    return tuple(
        TensorLayout(
            write_header((name, dtype, shape_of[name]) for name in names), dtype, end, starts
        )
        for dtype in sorted(DTYPE_NAMES, key=lambda one: one != torch.float32)
    )


def write_header(tensors: Iterable[tuple[str, torch.dtype, tuple[int, ...]]]) -> bytes:
    """Return what a file of tensors begins with, given the name, type and shape of each.

    They must be sorted by type in the order of `DTYPE_NAMES`, then by the bytes of the name.
    """
    header, end = {}, 0
    for name, dtype, shape in tensors:
        start, end = end, end + prod(shape) * dtype.itemsize
        header[name] = {
            "dtype": DTYPE_NAMES[dtype],
            "shape": list(shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % HEADER_ALIGNMENT)
    return len(text).to_bytes(8, "little") + text
