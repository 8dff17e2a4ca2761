"""Safe reading of a model's tensors from an untrusted file; nothing in it is run."""

import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.layout import checked_file_size
from overheard.archive.message_lines import MAX_AXES
from overheard.archive.npz import (
    ZIP_FAILURES,
    ArrayHeader,
    open_arrays,
    read_content,
    read_header,
)
from overheard.archive.tensor_files import find_flaw, open_tensors
from overheard.archive.weights import Shapes
from overheard.core.errors import TranscriptError
from overheard.disk.limits import ARRAY, refuse_large
from overheard.recorders.exports.conversions import explain_objects, how_to_convert
from overheard.recorders.model_files.tensor_head import OpenHeads, TensorHead

SUFFIXES_OF_TORCH = (".pt", ".pth", ".bin", ".ckpt")
SUFFIXES_OF_KERAS = (".h5", ".hdf5", ".keras")
SUFFIXES = (".safetensors", ".npz", *SUFFIXES_OF_TORCH, *SUFFIXES_OF_KERAS, ".onnx")
"""Suffixes of the files that are read."""

MAX_NAME_LENGTH = 200
"""Most characters of a tensor's name."""

MAX_TENSORS = 100_000
"""Most tensors of a file, as of a reply that is recorded."""

NUMBER_BYTES = 4
"""The bytes that a number takes at the least, as updates are computed with 32 bits."""

NUMBERS = re.compile(r"[<>|=]?(f[248]|[iu][1248]|b1)")
"""NumPy's type strings of plain numbers."""

_OBJECTS = re.compile(r"[|=]?O[0-9]*")
_MAX_PEEK = 4096
"""Bytes of an array of objects in which the name of their class is looked for."""

_WEIGHT_KINDS = re.compile(r"b?float16|float32|float64")
_WEIGHTS = frozenset({"F16", "BF16", "F32", "F64"})
_WHOLE = re.compile(r"[IU][0-9]+|BOOL")
_WHOLE_TYPES = re.compile(rf"{_WHOLE.pattern}|u?int[0-9]+|bool|[<>|=]?[iu][1248]")


@dataclass(frozen=True, slots=True)
class ExportedWeights:
    """The tensors of a file.

    Args:
        weights: the floating-point tensors.
        left_out: names of the others, such as the counters of a batch norm.

    """

    weights: Mapping[str, Tensor]
    left_out: tuple[str, ...]


def read_exported_weights(
    path: Path,
    folder: Path,
    shapes: Shapes | None = None,
    left_out: Collection[str] = (),
    *,
    has_codes: bool = False,
) -> ExportedWeights:
    """Read the tensors of one file, which must be finite; nothing is unpickled.

    Args:
        path: the file.
        folder: folder that the path must not leave.
        shapes: shapes of the required tensors, which alone are read; None = all floating-point
            tensors.
        left_out: names of other tensors that the file may contain.
        has_codes: whether required tensors may also be whole numbers, which are not checked.

    Raises:
        TranscriptError: if the file is invalid, with what to do. Sizes are checked before
            memory is allocated.

    """
    checked_file_size(path, folder)
    try:
        exported = _reader(path.suffix)(path, shapes, left_out, has_codes)
    except (*ZIP_FAILURES, SafetensorError) as error:
        raise unreadable_file(path, error) from error
    return check_weights(path, exported)


_Reader = Callable[[Path, Shapes | None, Collection[str], bool], ExportedWeights]


def _reader(suffix: str) -> _Reader:
    """Return what reads files with a suffix."""
    if suffix == ".safetensors":
        return _safetensors
    if suffix in SUFFIXES_OF_TORCH:
        from overheard.recorders.model_files.torch_file import open_torch_file

        return partial(_read_heads, open_torch_file)
    if suffix in SUFFIXES_OF_KERAS:
        from overheard.recorders.model_files.keras_file import open_keras_file

        return partial(_read_heads, open_keras_file)
    if suffix == ".onnx":
        from overheard.recorders.model_files.onnx_file import open_onnx_file

        return partial(_read_heads, open_onnx_file)
    return _npz


def _read_heads(
    open_heads: OpenHeads,
    path: Path,
    shapes: Shapes | None,
    spare: Collection[str],
    has_codes: bool,
) -> ExportedWeights:
    """Read tensors of a file whose heads are known before its numbers are read."""
    with open_heads(path) as heads:
        refuse_names(path, list(heads), shapes, spare)
        taken, left_out = dict[str, TensorHead](), list[str]()
        for name in heads if shapes is None else shapes:
            head = heads[name]
            is_weight = _WEIGHT_KINDS.fullmatch(head.kind)
            is_whole = _WHOLE_TYPES.fullmatch(head.kind)
            if is_whole and shapes is None:
                left_out.append(name)
                continue
            if not (is_weight or (has_codes and is_whole)):
                raise not_weights(path, name, head.kind)
            refuse_shape(path, name, head.shape, shapes)
            taken[name] = head
        sizes = [(head.count, head.itemsize) for head in taken.values()]
        refuse_large_numbers(path, sizes)
        if shapes is None:
            unpacked = sum(count * size for count, size in sizes)
            packed = path.stat().st_size
            refuse_large(str(path), unpacked, TranscriptError, part=ARRAY, packed=packed)
        return ExportedWeights(
            {name: head.read() for name, head in taken.items()}, tuple(left_out)
        )


def unreadable_file(path: Path, error: Exception) -> TranscriptError:
    """Return an error that a file of weights cannot be read, for this reason."""
    convert = how_to_convert(path.suffix)
    return TranscriptError(
        f"{path} cannot be read ({printable_excerpt(str(error) or type(error).__name__)}): "
        f"export it again{f', or {convert}' if convert else ''}"
    )


def check_weights(path: Path, exported: ExportedWeights) -> ExportedWeights:
    """Return the tensors of a file, if there are any and all their numbers are finite.

    Raises:
        TranscriptError: if not.

    """
    if not exported.weights:
        codes = (
            "only whole numbers, which are no weights but codes: export scale * (code - zero "
        )
        raise TranscriptError(
            f"{path} has {codes}point) as float32"
            if exported.left_out
            else f"{path} has no tensor: export the weights"
        )
    for name, tensor in exported.weights.items():
        flaw = find_flaw(tensor) if tensor.is_floating_point() else None
        if flaw:
            raise TranscriptError(
                f"{path}: {name!r} {flaw}: export it again or, if it is a client's, remove the "
                "file, so that its reply counts as missing"
            )
    return exported


def _safetensors(
    path: Path, shapes: Shapes | None, spare: Collection[str], has_codes: bool
) -> ExportedWeights:
    """Map the tensors of a safetensors file; pages are loaded on access."""
    weights, left_out = dict[str, Tensor](), list[str]()
    with open_tensors(path) as file:
        found = list(file.keys())
        refuse_names(path, found, shapes, spare)
        for name in found if shapes is None else shapes:
            head = file.get_slice(name)
            kind = head.get_dtype()
            if _WHOLE.fullmatch(kind) and shapes is None:
                left_out.append(name)
                continue
            if kind not in _WEIGHTS and not (has_codes and _WHOLE.fullmatch(kind)):
                raise not_weights(path, name, kind)
            refuse_shape(path, name, tuple(head.get_shape()), shapes)
            weights[name] = file.get_tensor(name)
    # Their pages are not read yet.
    refuse_large_numbers(path, ((one.numel(), one.itemsize) for one in weights.values()))
    return ExportedWeights(weights, tuple(left_out))


@dataclass(frozen=True, slots=True)
class _ArrayEntry:
    """An array in an `.npz` file, with its validated header."""

    entry: zipfile.ZipInfo
    kind: np.dtype[np.generic]
    header: ArrayHeader


def _npz(
    path: Path, shapes: Shapes | None, spare: Collection[str], has_codes: bool
) -> ExportedWeights:
    with open_arrays(path) as archive:
        entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
        if len(entries) != len(archive.infolist()):
            raise ValueError("it has two arrays with the same name")
        refuse_names(path, list(entries), shapes, spare)
        heads = {
            name: _read_entry(path, name, archive, entries[name])
            for name in (entries if shapes is None else shapes)
        }
        left_out = tuple(
            name for name, head in heads.items() if head.kind.kind != "f" and shapes is None
        )
        taken = {name: head for name, head in heads.items() if name not in left_out}
        for name, head in taken.items():
            if head.kind.kind != "f" and not has_codes:
                raise not_weights(path, name, str(head.kind))
            refuse_shape(path, name, head.header.shape, shapes)
        refuse_large_numbers(
            path, ((head.header.count, head.kind.itemsize) for head in taken.values())
        )
        if shapes is None:
            _refuse_bomb(path, taken)
        return ExportedWeights(
            {name: _tensor(archive, head) for name, head in taken.items()}, left_out
        )


def _read_entry(
    path: Path, name: str, archive: zipfile.ZipFile, entry: zipfile.ZipInfo
) -> _ArrayEntry:
    if not entry.filename.endswith(".npy"):
        raise ValueError(f"it contains {name!r}, which is no array")
    with archive.open(entry) as stream:
        try:
            header = read_header(stream.read)
        except ValueError as error:
            raise ValueError(f"{name!r}: {error}") from error
    if not NUMBERS.fullmatch(header.dtype):
        raise _no_numbers(path, name, header.dtype, archive, entry)
    kind = np.dtype(header.dtype)
    if header.start + header.count * kind.itemsize != entry.file_size:
        raise ValueError(f"the length of {name!r} differs from that in its header")
    return _ArrayEntry(entry, kind, header)


def _no_numbers(
    path: Path, name: str, dtype: str, archive: zipfile.ZipFile, entry: zipfile.ZipInfo
) -> TranscriptError:
    if not _OBJECTS.fullmatch(dtype):
        return not_weights(path, name, dtype)
    with archive.open(entry) as stream:
        start = stream.read(_MAX_PEEK)
    return TranscriptError(
        f"{path}: {printable_excerpt(repr(name))} has dtype {printable_excerpt(dtype)}: "
        f"{explain_objects(start)}"
    )


def _tensor(archive: zipfile.ZipFile, head: _ArrayEntry) -> Tensor:
    with archive.open(head.entry) as stream:
        stream.read(head.header.start)
        numbers = read_content(stream.read, head.header, head.kind)
    native = np.ascontiguousarray(numbers, head.kind.newbyteorder("="))
    # `ascontiguousarray` adds an axis to a scalar.
    return torch.from_numpy(native).reshape(head.header.shape)


def refuse_names(
    path: Path, found: Collection[str], shapes: Shapes | None, spare: Collection[str]
) -> None:
    """Raise `TranscriptError` if tensors are too many, missing or unknown, or badly named.

    Args:
        path: the file.
        found: names of its tensors.
        shapes: shapes of the required tensors; None = any tensors.
        spare: names of other tensors that the file may contain.

    """
    if len(found) > MAX_TENSORS:
        raise TranscriptError(
            f"{path} has {len(found)} tensors, at most {MAX_TENSORS} are read: export fewer"
        )
    for name in found:
        if not name.isprintable() or not 0 < len(name) <= MAX_NAME_LENGTH:
            raise TranscriptError(
                f"{path}: {printable_excerpt(repr(name))} is no valid name of a tensor: use 1 "
                f"to {MAX_NAME_LENGTH} printable characters"
            )
    if shapes is None:
        return
    missing = sorted(shapes.keys() - set(found))
    extra = sorted(set(found) - {*shapes, *spare})
    if missing or extra:
        raise TranscriptError(
            f"{path} has other tensors than the model of the first round: missing "
            f"{printable_excerpt(', '.join(missing)) or 'none'}, extra "
            f"{printable_excerpt(', '.join(extra)) or 'none'}: export the same tensors of "
            "every model"
        )


def refuse_shape(path: Path, name: str, shape: tuple[int, ...], shapes: Shapes | None) -> None:
    """Raise `TranscriptError` if a tensor has another shape than the required one, if any."""
    if len(shape) > MAX_AXES:
        raise TranscriptError(
            f"{path}: {name!r} has {len(shape)} axes, at most {MAX_AXES} are read: export it "
            "with fewer"
        )
    if shapes is not None and shape != shapes[name]:
        raise TranscriptError(
            f"{path}: {name!r} has shape {printable_excerpt(str(shape))}, but {shapes[name]} "
            "in the broadcast model: export replies to the model of the same round"
        )


def refuse_large_numbers(path: Path, tensors: Iterable[tuple[int, int]]) -> None:
    """Raise `TranscriptError` if tensors are too large once their numbers have 32 bits.

    Args:
        path: the file.
        tensors: how many numbers each has, and the bytes of one.

    """
    taken = sum(count * max(NUMBER_BYTES, size) for count, size in tensors)
    refuse_large(f"{path}: its tensors", taken, TranscriptError, part=ARRAY)


def _refuse_bomb(path: Path, heads: Mapping[str, _ArrayEntry]) -> None:
    size = path.stat().st_size
    unpacked = sum(head.entry.file_size for head in heads.values())
    refuse_large(str(path), unpacked, TranscriptError, part=ARRAY, packed=size)


def not_weights(path: Path, name: str, kind: str) -> TranscriptError:
    """Return an error that a tensor has this type of numbers, which is no weights'."""
    start = f"{path}: {printable_excerpt(repr(name))} has dtype {printable_excerpt(kind)}"
    if _WHOLE_TYPES.fullmatch(kind):
        return TranscriptError(
            f"{start}: these are whole-number codes and no weights: state their scale and "
            "zero_point in [codes] of about.toml, or export scale * (code - zero point) as "
            "float32"
        )
    return TranscriptError(
        f"{start}, not floating-point numbers of 16 to 64 bits: export it as float32"
    )
