"""Tensors in safetensors files: how they are read, checked and serialized."""

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from time import time

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from overheard.archive.excerpt import printable_excerpt
from overheard.core.errors import TranscriptError
from overheard.core.messages import is_finite
from overheard.disk.digests import CLOCK_TICK, HOW_TO_TRUST, is_store_trusted, sha256_of

SUPPORTED_DTYPES = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})
"""The data types of weights."""

CHECKED_AT_ONCE = 2**24
"""Elements to check at a time."""

MAX_LIST_BYTES = 2**24
"""Most bytes of the list of tensors, enough for 100,000 of them; it takes 13 times as many in
memory."""

SMALL_FILE_BYTES = 2**18
"""Files up to this size are read whole and kept in memory, since opening a file takes longer
than reading it."""

CACHED_FILES = 256
"""Most small files in memory, those that were read last. They take 128 MiB at most: numbers of
16 bits take twice the size of their file."""

ShapeItems = tuple[tuple[str, tuple[int, ...]], ...]
"""The name and shape of each tensor."""


def open_tensors(path: Path) -> safe_open:
    """Open a safetensors file and read its list of tensors.

    Raises:
        SafetensorError: if it is no safetensors file, or its list of tensors is too long.
        OSError: if it cannot be read.

    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
    if length > MAX_LIST_BYTES:
        raise SafetensorError(
            f"its list of tensors has {length} bytes, at most {MAX_LIST_BYTES} are read"
        )
    return safe_open(path, framework="pt")


def check_sha256(path: Path, sha256: str | None) -> None:
    """Compare a file with the digest that its message states; skipped if the store is trusted.

    Takes 0.5 s for 1 GB. A file that does not change is read once per process.

    Args:
        path: the path of the file.
        sha256: the stated SHA-256, from an untrusted source; None = not known.

    Raises:
        TranscriptError: if the file differs, or cannot be read.

    """
    if sha256 is None or is_store_trusted():
        return
    found = file_sha256(path)
    if found != sha256:
        raise altered_file_error(path, found, sha256, f"; {HOW_TO_TRUST}")


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file; raise `TranscriptError` if it cannot be read."""
    try:
        return sha256_of(path)
    except OSError as error:
        raise _damaged_file_error(path, error) from error


def altered_file_error(path: Path, found: str, stated: str, more: str = "") -> TranscriptError:
    """Return the error for a file whose digest is not the one that its message states."""
    return TranscriptError(
        f"{path} was altered after it was written (SHA-256 {found}, written "
        f"{printable_excerpt(stated)}): copy the whole transcript again{more}"
    )


def read_stored_tensor(
    path: Path, shapes: Mapping[str, tuple[int, ...]], name: str, sha256: str | None = None
) -> Tensor:
    """Read and check one of the tensors of a file; small files are read once, and kept.

    Args:
        path: the path of the file.
        shapes: the shapes of all tensors that the file must have.
        name: the tensor to read.
        sha256: the digest of the file, see `check_sha256`.

    Raises:
        TranscriptError: if the file is damaged, or has another digest or other tensors than it
            should, or this tensor has invalid values.

    """
    try:
        state = os.stat(path)
        # A file that changed just now may change again, and show the same time.
        is_settled = time() - state.st_mtime > CLOCK_TICK
        if is_settled and state.st_size <= SMALL_FILE_BYTES:
            version = (state.st_ino, state.st_mtime_ns, state.st_ctime_ns, state.st_size)
            # What was read without a comparison is not kept for those who compare.
            compared = None if is_store_trusted() else sha256
            read = _read_small_file(path, version, tuple(shapes.items()), compared)
            return read[name].clone()  # so that a caller may change it
    except (OSError, TranscriptError):
        # Another tensor of the file may be the damaged one: read this one alone.
        pass
    return read_tensors(path, (name,), shapes, sha256)[name]


def read_tensors(
    path: Path,
    names: tuple[str, ...],
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    sha256: str | None = None,
) -> dict[str, Tensor]:
    """Read and check tensors of a safetensors file, as float32.

    Models compute in float32. The conversion is exact for 16 bits, and rounds 64 bits.

    Args:
        path: the path of the file.
        names: the tensors to read.
        shapes: the shapes of all tensors that the file must have; None = it must have just
            `names`.
        sha256: the digest of the file, see `check_sha256`.

    Raises:
        TranscriptError: naming the file, the tensor and a remedy.

    """
    check_sha256(path, sha256)
    try:
        with open_tensors(path) as file:
            _check_names(path, set(file.keys()), set(names if shapes is None else shapes))
            read = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError) as error:
        raise _damaged_file_error(path, error) from error
    for name, tensor in read.items():
        if shapes is not None:
            _check_shape(path, name, tensor, shapes[name])
        _refuse_flaw(path, name, tensor)
    return {name: tensor.float() for name, tensor in read.items()}


Blocks = Sequence[tuple[int, int]]
"""Where parts of a tensor begin and end (not included), in its flat order."""


def read_tensor_blocks(
    path: Path,
    shapes: Mapping[str, tuple[int, ...]],
    blocks: Mapping[str, Blocks],
    sha256: str | None = None,
) -> dict[str, Tensor]:
    """Read and check parts of the tensors of a safetensors file, in the precision of the file.

    The file is mapped into memory, so that only the pages of the parts are read. If its digest
    is compared, the whole file is read once.

    Args:
        path: the path of the file.
        shapes: the shapes of all tensors that the file must have.
        blocks: the parts to read, by tensor.
        sha256: the digest of the file, see `check_sha256`.

    Returns:
        By tensor, its parts one after the other.

    Raises:
        TranscriptError: as `read_tensors`, for the parts alone.

    """
    check_sha256(path, sha256)
    read = dict[str, Tensor]()
    try:
        with open_tensors(path) as file:
            _check_names(path, set(file.keys()), set(shapes))
            for name, parts in blocks.items():
                whole = file.get_tensor(name)
                _check_shape(path, name, whole, shapes[name])
                flat = whole.reshape(-1)
                read[name] = torch.cat([flat[start:stop] for start, stop in parts])
    except (SafetensorError, OSError) as error:
        raise _damaged_file_error(path, error) from error
    for name, tensor in read.items():
        _refuse_flaw(path, name, tensor)
    return read


@lru_cache(CACHED_FILES)
def _read_small_file(
    path: Path, version: tuple[int, ...], shapes: ShapeItems, sha256: str | None
) -> dict[str, Tensor]:
    """Read and check all tensors of a file, once for each version of it on disk."""
    expected = dict(shapes)
    return read_tensors(path, tuple(expected), expected, sha256)


def find_flaw(tensor: Tensor) -> str | None:
    """Return why a tensor is not valid as weights; None if it is valid."""
    if not tensor.is_floating_point():
        return f"holds {tensor.dtype}, no floating-point numbers"
    if tensor.dtype not in SUPPORTED_DTYPES:
        return f"holds {tensor.dtype}, which is not supported: send it as float32"
    # A chunk at a time, as a mapped tensor may be larger than memory.
    chunks = torch.split(tensor.reshape(-1), CHECKED_AT_ONCE)
    if not all(is_finite(chunk.float()) for chunk in chunks):
        return "holds NaN or infinity, as float32"
    return None


def to_safetensors(weights: Mapping[str, Tensor]) -> bytes:
    """Serialize tensors as safetensors; equal tensors give equal bytes.

    Raises:
        ValueError: if any tensor has a flaw.

    """
    for name, tensor in weights.items():
        flaw = find_flaw(tensor)
        if flaw:
            raise ValueError(f"the tensor {name!r} {flaw}: only finite weights can be sent")
    stored, starts = dict[str, Tensor](), set[int]()
    for name, tensor in weights.items():
        one = tensor.detach().cpu().contiguous()
        start = one.untyped_storage().data_ptr()
        # safetensors refuses tensors that share memory.
        stored[name] = one.clone() if start in starts else one
        starts.add(start)
    return save(stored)


def _damaged_file_error(path: Path, error: Exception) -> TranscriptError:
    return TranscriptError(
        f"{path} is damaged or cut short ({printable_excerpt(str(error))}): copy the whole "
        "transcript again"
    )


def _check_shape(path: Path, name: str, tensor: Tensor, expected: tuple[int, ...]) -> None:
    if tuple(tensor.shape) != expected:
        raise TranscriptError(
            f"{_name_tensor(path, name)} has shape {tuple(tensor.shape)}, the broadcast has "
            f"{printable_excerpt(str(expected))}: record updates of the model that was "
            "broadcast"
        )


def _refuse_flaw(path: Path, name: str, tensor: Tensor) -> None:
    flaw = find_flaw(tensor)
    if flaw:
        raise TranscriptError(
            f"{_name_tensor(path, name)} {flaw}: remove this message, or record it again"
        )


def _name_tensor(path: Path, name: str) -> str:
    return f"{path}: {printable_excerpt(repr(name))}"


def _check_names(path: Path, found: set[str], expected: set[str]) -> None:
    if found == expected:
        return
    missing, extra = (
        printable_excerpt(str(sorted(expected - found))),
        printable_excerpt(str(sorted(found - expected))),
    )
    raise TranscriptError(
        f"{path} has other tensors than the broadcast (missing {missing}, extra {extra}): "
        "record updates of the model that was broadcast"
    )
