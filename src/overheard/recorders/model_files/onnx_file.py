"""Tensors of an `.onnx` file: the initializers of its graph."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from overheard.archive.excerpt import printable_excerpt
from overheard.core.errors import TranscriptError
from overheard.disk.limits import ARRAY, refuse_large
from overheard.recorders.model_files.onnx_messages import find_initializers
from overheard.recorders.model_files.tensor_head import Heads, TensorHead

if TYPE_CHECKING:
    import onnx

WHOLE = frozenset({2, 3, 4, 5, 6, 7, 9, 12, 13})
"""The numbers of types of whole numbers in ONNX."""

KINDS = {1: ("float32", 4), 10: ("float16", 2), 11: ("float64", 8), 16: ("bfloat16", 2)}
"""By the number of a type in ONNX, its name and the bytes of a number."""


@contextmanager
def open_onnx_file(path: Path) -> Iterator[Heads]:
    """Open a file of ONNX; its graph is not run, and no other file is read.

    Raises:
        ValueError: if it is no file of ONNX, or has its weights in other files.
        TranscriptError: if onnx is not installed.

    """
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise TranscriptError(
            "reading files of ONNX needs the package onnx: install overheard[weights]"
        ) from error
    # The parser copies the numbers once.
    refuse_large(str(path), 2 * path.stat().st_size, TranscriptError, part=ARRAY)
    try:
        stored = [
            onnx.TensorProto.FromString(bytes(one))
            for one in find_initializers(path.read_bytes())
        ]
    except ValueError:
        raise
    except Exception as error:  # whatever its parser raises
        raise ValueError("it is no file of ONNX") from error
    yield {(one.name or str(number)): _head(one) for number, one in enumerate(stored)}


def _head(stored: "onnx.TensorProto") -> TensorHead:
    kind, size = KINDS.get(stored.data_type, ("", 1))
    if not kind:
        known = stored.data_type in WHOLE
        kind = f"int{stored.data_type}" if known else f"type {stored.data_type} of ONNX"
    return TensorHead(tuple(stored.dims), kind, size, partial(_load, stored))


def _load(stored: "onnx.TensorProto") -> Tensor:
    from onnx.numpy_helper import to_array

    if stored.data_location or stored.external_data:
        raise ValueError(
            f"{printable_excerpt(stored.name)} is in another file: save the model with all of "
            "its weights in one file"
        )
    kind, size = KINDS[stored.data_type]
    counts = {len(stored.raw_data) // size, len(stored.float_data), len(stored.double_data)}
    counts.add(len(stored.int32_data))
    if int(np.prod(stored.dims, dtype=object)) not in counts:
        raise ValueError(
            f"{printable_excerpt(stored.name)} has more or fewer numbers than it says"
        )
    numbers = to_array(stored)
    # PyTorch takes no bfloat16 from NumPy, and no array that cannot be written to.
    copied = np.array(numbers, np.float32 if kind == "bfloat16" else numbers.dtype)
    return torch.from_numpy(copied).reshape(tuple(stored.dims))
