"""Tensors of a `.pt`, `.pth`, `.bin` or `.ckpt` file, as `torch.save` writes it."""

import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.npz import CHUNK_BYTES, open_arrays
from overheard.recorders.model_files.tensor_head import Heads, TensorHead
from overheard.recorders.model_files.torch_values import (
    SavedTensor,
    find_state,
    read_values,
)

MOST_BYTES = 2**24
"""The most bytes of the description of the tensors: each takes some hundred."""

KINDS: Mapping[str, tuple[str, torch.dtype]] = MappingProxyType(
    {
        "FloatStorage": ("float32", torch.float32),
        "DoubleStorage": ("float64", torch.float64),
        "HalfStorage": ("float16", torch.float16),
        "BFloat16Storage": ("bfloat16", torch.bfloat16),
        "LongStorage": ("int64", torch.int64),
        "IntStorage": ("int32", torch.int32),
        "ShortStorage": ("int16", torch.int16),
        "CharStorage": ("int8", torch.int8),
        "ByteStorage": ("uint8", torch.uint8),
        "BoolStorage": ("bool", torch.bool),
    }
)
"""By the name of a storage, the type of its numbers."""


@contextmanager
def open_torch_file(path: Path) -> Iterator[Heads]:
    """Open a file of PyTorch 1.6 or newer; its program is read, and never run.

    Raises:
        ValueError: if it is another file, or has no tensors, with what to do.

    """
    if not zipfile.is_zipfile(path):
        raise ValueError("it was saved by PyTorch before 1.6, or not by torch.save")
    with open_arrays(path) as archive:
        names = [one.filename for one in archive.infolist()]
        programs = [one for one in names if one.rpartition("/")[2] == "data.pkl"]
        if any("/code/" in one for one in names) or len(programs) != 1:
            raise ValueError("it has no state dict, but a network with its code")
        root = programs[0].removesuffix("data.pkl")
        if f"{root}byteorder" in names and _first_letter(archive, f"{root}byteorder") == b"b":
            raise ValueError("its numbers have the order of another machine")
        entry = archive.getinfo(programs[0])
        if entry.file_size > MOST_BYTES:
            raise ValueError(f"its list of tensors has {entry.file_size} bytes")
        found = find_state(read_values(archive.read(entry)))
        if not found:
            raise ValueError(
                "it has no dict of tensors, and may be a whole network: save its state_dict()"
            )
        yield {name: _head(archive, root, name, one) for name, one in found.items()}


def _first_letter(archive: zipfile.ZipFile, member: str) -> bytes:
    with archive.open(member) as stream:
        return stream.read(1)


def _head(archive: zipfile.ZipFile, root: str, name: str, stored: SavedTensor) -> TensorHead:
    kind, dtype = KINDS.get(stored.storage.kind, (stored.storage.kind, torch.uint8))
    load = partial(_load, archive, f"{root}data/{stored.storage.key}", name, dtype, stored)
    return TensorHead(stored.shape, kind, dtype.itemsize, load)


def _load(
    archive: zipfile.ZipFile, member: str, name: str, dtype: torch.dtype, stored: SavedTensor
) -> Tensor:
    entry = archive.getinfo(member)
    if entry.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{printable_excerpt(name)} is compressed, as torch.save does not do")
    extents = [(size - 1) * step for size, step in zip(stored.shape, stored.steps, strict=True)]
    last = stored.offset + sum(extents)
    if 0 in stored.shape:
        return torch.empty(stored.shape, dtype=dtype)
    start, end = stored.offset * dtype.itemsize, (last + 1) * dtype.itemsize
    if end > entry.file_size:
        raise ValueError(f"{printable_excerpt(name)} is longer than its numbers in the file")
    content = _read_part(archive, entry, start, end)
    if len(content) != end - start:
        raise ValueError(f"{printable_excerpt(name)} was cut short")
    numbers = torch.frombuffer(content, dtype=dtype)
    return numbers.as_strided(stored.shape, stored.steps).contiguous().clone()


def _read_part(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, start: int, end: int
) -> bytearray:
    """Return a part of a member that is not compressed, without reading what is before it.

    Python's zip reader would read it, for each of many tensors in one storage.
    """
    content = bytearray()
    with archive.open(entry) as stream:  # compares the name, and refuses encrypted ones
        if not start:
            return content + stream.read(end)
    file = archive.fp
    assert file is not None
    file.seek(entry.header_offset)
    lengths = struct.unpack("<2H", file.read(30)[26:])  # of the name and of further fields
    file.seek(entry.header_offset + 30 + sum(lengths) + start)
    while len(content) < end - start:
        part = file.read(min(CHUNK_BYTES, end - start - len(content)))
        if not part:
            break
        content += part
    return content
