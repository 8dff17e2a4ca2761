"""Tensors of a `.h5`, `.weights.h5` or `.keras` file of Keras, by the names of its layers."""

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.npz import open_arrays
from overheard.core.errors import TranscriptError
from overheard.disk.limits import ARRAY, refuse_large
from overheard.recorders.model_files.tensor_head import Heads, TensorHead

if TYPE_CHECKING:
    import h5py

WEIGHTS = "model.weights.h5"
"""The member of a `.keras` file that has its weights."""

MOST_DATASETS = 100_000
"""The most tensors of a file."""

NOT_THE_MODEL = frozenset({"optimizer", "optimizer_weights", "top_level_model_weights"})
"""Groups that are not of the network."""

VARIABLE = re.compile(r"(.+)/vars/([0-9]{1,4})")
"""The name of a variable in files of Keras 3, which number the variables of a layer."""

_DIGITS = re.compile(r"([0-9]{1,18})")
_BEFORE = re.compile(r"^(model_weights/|_layer_checkpoint_dependencies/|layers/)+")

OF_NORM = ("gamma", "beta", "moving_mean", "moving_variance")
"""The variables of a batch norm, and the first two of a layer norm, as Keras 3 numbers them."""

OF_LAYERS: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {1: ("kernel",), 2: ("kernel", "bias"), 3: ("kernel", "recurrent_kernel", "bias")}
)
"""Names of the variables of other layers, by how many there are."""


@contextmanager
def open_keras_file(path: Path) -> Iterator[Heads]:
    """Open a file of Keras; its network is text in the file, and never built.

    Variables that Keras 3 only numbers get the names that Keras gave them before: two are
    `kernel` and `bias`, four those of a batch norm.

    Raises:
        ValueError: if it is another file, or refers to other files.
        TranscriptError: if h5py is not installed.

    """
    try:
        import h5py
    except ModuleNotFoundError as error:
        raise TranscriptError(
            "reading files of Keras needs the package h5py: install overheard[weights]"
        ) from error
    with _weights_of(path) as source, h5py.File(source, "r") as file:
        found = dict[str, TensorHead]()
        for name, one in sorted(_datasets(file), key=lambda pair: _order(pair[0])):
            kind, size = _kind_of(one)
            found[name] = TensorHead(one.shape, kind, size, partial(_load, name, one))
        yield _with_names(found)


@contextmanager
def _weights_of(path: Path) -> Iterator[Path | BytesIO]:
    """Yield the HDF5 file: the file itself, or the member of a `.keras` file."""
    if not zipfile.is_zipfile(path):
        yield path
        return
    with open_arrays(path) as archive:
        if WEIGHTS not in archive.namelist():
            raise ValueError(f"it has no {WEIGHTS}, as files of Keras 3 have")
        entry = archive.getinfo(WEIGHTS)
        size = path.stat().st_size
        refuse_large(str(path), entry.file_size, TranscriptError, part=ARRAY, packed=size)
        yield BytesIO(archive.read(entry))


def _datasets(group: "h5py.Group") -> "Iterator[tuple[str, h5py.Dataset]]":
    """Yield the data sets of the network, from this file alone: no link is followed."""
    import h5py

    queue, seen = [("", group)], 0
    while queue:
        prefix, one = queue.pop()
        for name in one:
            seen += 1
            if seen > MOST_DATASETS:
                raise ValueError(f"it has more than {MOST_DATASETS} tensors and groups")
            if not isinstance(one.get(name, getlink=True), h5py.HardLink):
                raise ValueError(
                    f"{printable_excerpt(name)} is a link, perhaps to another file"
                )
            held = one[name]
            if isinstance(held, h5py.Group) and name not in NOT_THE_MODEL:
                if prefix.count("/") > 20:
                    raise ValueError("its groups are nested more than 20 times")
                queue.append((f"{prefix}{name}/", held))
            elif isinstance(held, h5py.Dataset) and held.shape is not None:
                if held.external or held.is_virtual:
                    raise ValueError(f"{printable_excerpt(name)} lies in another file")
                yield f"{prefix}{name}", held


def _kind_of(held: "h5py.Dataset") -> tuple[str, int]:
    """Return the type of the numbers of a data set, and the bytes of one."""
    try:
        return held.dtype.name, held.dtype.itemsize
    except TypeError:  # a type of HDF5 that NumPy does not have
        return "a type without an equivalent in NumPy", held.id.get_type().get_size()


def _load(name: str, held: "h5py.Dataset") -> Tensor:
    if held.id.get_create_plist().get_nfilters():
        # A part may unpack to any size, whatever the shape says.
        raise ValueError(f"{printable_excerpt(name)} is compressed, as Keras does not do")
    numbers = np.asarray(held[()])
    array = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("="))
    return torch.from_numpy(array).reshape(numbers.shape)


def _order(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that puts dense_10 after dense_9."""
    parts = _DIGITS.split(name)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


def _with_names(found: Heads) -> dict[str, TensorHead]:
    """Return the tensors under the names of their layers, as Keras 2 writes them."""
    layers = dict[str, list[TensorHead]]()
    for name, head in found.items():
        if match := VARIABLE.fullmatch(name):
            layers.setdefault(match[1], []).append(head)
    named = dict[str, TensorHead]()
    for name, head in found.items():
        match = VARIABLE.fullmatch(name)
        layer, part = _split(name)
        if match:
            layer, part = match[1], _part(match[1], int(match[2]), layers[match[1]])
        short = f"{_BEFORE.sub('', layer)}/{part}".lstrip("/")
        named[name if short in named else short] = head
    return named


def _part(layer: str, number: int, variables: Sequence[TensorHead]) -> str:
    """Return the name of a variable of a layer, or its number."""
    names = OF_LAYERS.get(len(variables), ())
    if len(variables) in (2, 4) and all(len(one.shape) == 1 for one in variables):
        names = OF_NORM
    elif len(variables) == 1 and "embedding" in layer.rpartition("/")[2]:
        names = ("embeddings",)
    return names[number] if number < len(names) else f"vars/{number}"


def _split(name: str) -> tuple[str, str]:
    """Return the layer and the part of a name of Keras 2, which names the layer twice."""
    layer, _, part = name.rpartition("/")
    parts = _BEFORE.sub("", layer).split("/")
    half = len(parts) // 2
    if len(parts) % 2 == 0 and parts[:half] == parts[half:]:
        parts = parts[:half]
    return "/".join(parts), part
