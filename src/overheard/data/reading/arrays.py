"""Readers of single arrays in untrusted `.npz` files."""

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Int64, Shaped, UInt8

from overheard.archive.npz import (
    ZIP_FAILURES,
    ArrayHeader,
    open_arrays,
    read_content,
    read_header,
)
from overheard.core.errors import DataError
from overheard.core.escape import escape_unprintable, is_printable
from overheard.disk.limits import ARRAY, refuse_large, refuse_sparse

ITEM_BYTES = 8
"""The bytes that a number takes at the least, while an array is converted."""

MAX_NAME_LENGTH = 100
"""The most characters in the name of a class or user; names appear in reports."""

_MAX_QUOTED = 1000
"""The most characters that an error quotes from a file."""

_DTYPES = re.compile(
    r"[<>|=]?(b1|[iu][1248]|f(2|4|8|16)|U[1-9][0-9]{0,6}"
    r"|M8\[([YMWDhm]|[munpfa]?s)\])"
)

_LAST_CODE_POINT = 0x10FFFF
"""The last code point of Unicode. NumPy accepts larger ones, but fails when they are read."""


def list_arrays(path: Path) -> frozenset[str]:
    """Return the names of the arrays that the file lists.

    Raises:
        DataError: if the file is not an `.npz` file.

    """
    try:
        with open_arrays(path) as archive:
            return frozenset(entry.removesuffix(".npy") for entry in archive.namelist())
    except ZIP_FAILURES as failure:
        raise _unreadable(path, failure) from failure


def read_array(path: Path, name: str) -> Shaped[np.ndarray, "..."]:
    """Read one array of the file, and check its header against the size of the file.

    Raises:
        DataError: if the file is damaged or does not have the array; if the array is too
            large, or holds anything but numbers, strings or dates. Python objects are never
            unpickled. The check comes before memory is allocated.

    """
    refuse_sparse(path, DataError)
    names = list_arrays(path)
    if name not in names:
        others = _quoted(", ".join(sorted(names))) or "none at all"
        raise DataError(f"{path} has no array '{name}', only {others}: rename or add it")
    try:
        with open_arrays(path) as archive:
            entry = archive.getinfo(f"{name}.npy")
            with archive.open(entry) as stream:
                header = read_header(stream.read)
                dtype = _checked_dtype(path, name, header, entry)
                array = read_content(stream.read, header, dtype)
    except ZIP_FAILURES as failure:
        raise _unreadable(path, failure) from failure
    if dtype.kind == "U" and array.size:
        code_points = array.ravel("K").view(f"{dtype.byteorder}u4")
        if code_points.max() > _LAST_CODE_POINT:
            raise DataError(
                f"{path}: '{name}' has strings that are not Unicode: get a new copy"
            )
    return array


@final
@dataclass(frozen=True, slots=True)
class ArrayFile(Mapping[str, Shaped[np.ndarray, "..."]]):
    """The arrays of a file by name, each read when it is asked for; raises as `read_array`."""

    path: Path

    def __getitem__(self, name: str) -> Shaped[np.ndarray, "..."]:
        """Read an array."""
        return read_array(self.path, name)

    def __contains__(self, name: object) -> bool:
        """Return whether there is such an array."""
        return name in list_arrays(self.path)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(sorted(list_arrays(self.path)))

    def __len__(self) -> int:
        """Return the number of arrays."""
        return len(list_arrays(self.path))


def read_pixels(
    path: Path, name: str, shape: tuple[int, ...]
) -> UInt8[np.ndarray, "examples height width *channels"]:
    """Read an array of 8-bit images of this shape.

    Raises:
        DataError: see `read_array`; also if the images have another shape or type.

    """
    pixels = read_array(path, name)
    if pixels.dtype != np.uint8 or pixels.shape[1:] != shape or not len(pixels):
        raise DataError(
            f"{path}: '{name}' must be uint8 of shape {('examples', *shape)}, but is "
            f"{pixels.dtype} of shape {pixels.shape}"
        )
    return pixels


def read_numbers(
    path: Path, name: str, *, below: int, examples: int
) -> Int64[np.ndarray, " examples"]:
    """Read an array of labels or users: a number from 0 to `below` - 1 per example.

    Raises:
        DataError: see `read_array`; also if a number is out of range.

    """
    return checked_numbers(path, name, read_array(path, name), below=below, examples=examples)


def checked_numbers(
    path: Path, name: str, numbers: Shaped[np.ndarray, "..."], *, below: int, examples: int
) -> Int64[np.ndarray, " examples"]:
    """Return these numbers as int64 if they are from 0 to `below` - 1, one per example.

    Raises:
        DataError: if they are not.

    """
    if numbers.dtype.kind not in "iu" or numbers.shape != (examples,):
        raise DataError(
            f"{path}: '{name}' must be {examples} whole numbers, one per example, but is "
            f"{numbers.dtype} of shape {numbers.shape}"
        )
    if numbers.min() < 0 or numbers.max() >= below:
        raise DataError(
            f"{path}: '{name}' must lie between 0 and {below - 1}, but ranges from "
            f"{numbers.min()} to {numbers.max()}"
        )
    return numbers.astype(np.int64)


def read_names(path: Path, name: str) -> tuple[str, ...]:
    """Read an array of names; raise as `read_array` and `names_of_array`."""
    return names_of_array(path, name, read_array(path, name))


def names_of_array(path: Path, name: str, names: Shaped[np.ndarray, "..."]) -> tuple[str, ...]:
    """Return an array of names.

    Raises:
        DataError: if it holds anything else; see also `checked_names`.

    """
    if names.dtype.kind != "U" or names.ndim != 1:
        raise DataError(
            f"{path}: '{name}' must be a list of names, but is {names.dtype} of shape "
            f"{names.shape}"
        )
    return checked_names(path, name, names.tolist())


def checked_names(path: Path | str, name: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return these names if they are all different, printable and short.

    Blanks of any kind are printable, and so are the joiners of words in many scripts (U+200C,
    U+200D). Signs that change the direction of a text are not.

    Raises:
        DataError: if they are not.

    """
    for word in names:
        if not is_printable(word) or not 0 < len(word) <= MAX_NAME_LENGTH:
            raise DataError(
                f"{path}: {word[:MAX_NAME_LENGTH]!r} in '{name}' is not a valid name: use 1 to "
                f"{MAX_NAME_LENGTH} printable characters"
            )
    if len(set(names)) != len(names):
        raise DataError(f"{path}: '{name}' has a name twice: make the names differ")
    return tuple(names)


def _checked_dtype(
    path: Path, name: str, header: ArrayHeader, entry: zipfile.ZipInfo
) -> np.dtype[np.generic]:
    """Return the type of the array if the file can hold as many numbers as its header says."""
    if header.dtype.endswith("O"):
        raise DataError(
            f"{path}: '{name}' holds Python objects, which are never unpickled: save it as "
            "plain numbers or fixed-width strings"
        )
    if not _DTYPES.fullmatch(header.dtype):
        raise DataError(
            f"{path}: '{name}' has type {_quoted(repr(header.dtype))}, which NumPy reads "
            "neither as numbers nor as strings or dates: save it as one of them"
        )
    dtype, count = np.dtype(header.dtype), header.count
    label = f"{path}: '{name}' of shape {_quoted(str(header.shape))}"
    refuse_large(label, count * max(ITEM_BYTES, dtype.itemsize), DataError, part=ARRAY)
    if header.start + count * dtype.itemsize != entry.file_size:
        raise DataError(
            f"{path}: '{name}' does not have the length in its header: get a new copy"
        )
    packed = min(entry.compress_size, path.stat().st_size)
    refuse_large(label, entry.file_size, DataError, part=ARRAY, packed=packed)
    return dtype


def _quoted(text: str) -> str:
    """Return text from the file, shortened and escaped for an error."""
    return escape_unprintable(text[:_MAX_QUOTED])


def _unreadable(path: Path, failure: Exception) -> DataError:
    reason = _quoted(str(failure)) or type(failure).__name__
    return DataError(f"{path} cannot be read as .npz ({reason}): get a new copy")
