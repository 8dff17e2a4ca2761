"""Reads single arrays out of `.npz` files that nobody vouches for."""

import math
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int64, Shaped, UInt8
from numpy.lib import format as npy

from overheard.core.errors import DataError

LARGEST = 2**29
"""Numbers in one array at most (2 GiB as float32): a small file can promise far more."""

WIDEST = 8
"""Bytes a number takes at most; cells of words may be wider, if there are fewer of them."""

LONGEST_NAME = 100
"""Characters in the name of a class or a user at most; names are shown in reports."""


def array_names(path: Path) -> frozenset[str]:
    """Which arrays the file holds, by its own account.

    Raises:
        DataError: if the file is no `.npz`.

    """
    try:
        with zipfile.ZipFile(path) as archive:
            return frozenset(entry.removesuffix(".npy") for entry in archive.namelist())
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as failure:
        raise _damaged(path, failure) from failure


def read_array(path: Path, name: str) -> Shaped[np.ndarray, "..."]:
    """One array of the file; its header is believed only as far as the file bears it out.

    Raises:
        DataError: if the file is damaged, lacks the array, or the array is too large or
            holds Python objects (those are never unpickled).

    """
    held = array_names(path)
    if name not in held:
        raise DataError(
            f"{path} has no array '{name}', only {', '.join(sorted(held)) or 'none at all'}: "
            "give it that name"
        )
    try:
        with zipfile.ZipFile(path) as archive:
            entry = archive.getinfo(f"{name}.npy")
            _check_header(path, name, archive, entry)
            with archive.open(entry) as stream:
                array: Shaped[np.ndarray, "..."] = npy.read_array(stream, allow_pickle=False)
                return array
    except (
        OSError,
        EOFError,
        KeyError,
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
        RuntimeError,
        MemoryError,
    ) as failure:
        raise _damaged(path, failure) from failure


def read_pixels(
    path: Path, name: str, shape: tuple[int, ...]
) -> UInt8[np.ndarray, "examples height width *channels"]:
    """One array of 8-bit images, each of this shape.

    Raises:
        DataError: see `read_array`; also if the images are of another shape or type.

    """
    pixels = read_array(path, name)
    if pixels.dtype != np.uint8 or pixels.shape[1:] != shape or not len(pixels):
        raise DataError(
            f"{path}: '{name}' must be uint8 of shape {('examples', *shape)}, is "
            f"{pixels.dtype} of shape {pixels.shape}"
        )
    return pixels


def read_numbers(
    path: Path, name: str, *, below: int, examples: int
) -> Int64[np.ndarray, " examples"]:
    """One array of numbers from 0 to `below` - 1, one an example: labels or users.

    Raises:
        DataError: see `read_array`; also if a number is none of these.

    """
    return checked_numbers(path, name, read_array(path, name), below=below, examples=examples)


def checked_numbers(
    path: Path, name: str, numbers: Shaped[np.ndarray, "..."], *, below: int, examples: int
) -> Int64[np.ndarray, " examples"]:
    """These numbers as int64, from 0 to `below` - 1, one an example.

    Raises:
        DataError: if they are anything else.

    """
    if numbers.dtype.kind not in "iu" or numbers.shape != (examples,):
        raise DataError(
            f"{path}: '{name}' must be {examples} whole numbers, one an example, is "
            f"{numbers.dtype} of shape {numbers.shape}"
        )
    if numbers.min() < 0 or numbers.max() >= below:
        raise DataError(
            f"{path}: '{name}' must lie between 0 and {below - 1}, goes from "
            f"{numbers.min()} to {numbers.max()}"
        )
    return numbers.astype(np.int64)


def read_names(path: Path, name: str) -> tuple[str, ...]:
    """One array of names.

    Raises:
        DataError: see `read_array` and `checked_names`.

    """
    names = read_array(path, name)
    if names.dtype.kind != "U" or names.ndim != 1:
        raise DataError(
            f"{path}: '{name}' must be a list of names, is {names.dtype} of {names.shape}"
        )
    return checked_names(path, name, names.tolist())


def checked_names(path: Path | str, name: str, names: Sequence[str]) -> tuple[str, ...]:
    """These names, all different, printable and short.

    Raises:
        DataError: if one of them is not.

    """
    for word in names:
        if not word.isprintable() or not 0 < len(word) <= LONGEST_NAME:
            raise DataError(
                f"{path}: {word[:LONGEST_NAME]!r} in '{name}' is no name: names are printable "
                f"and have 1 to {LONGEST_NAME} characters"
            )
    if len(set(names)) != len(names):
        raise DataError(f"{path}: '{name}' names two things alike: make the names differ")
    return tuple(names)


def _check_header(
    path: Path, name: str, archive: zipfile.ZipFile, entry: zipfile.ZipInfo
) -> None:
    with archive.open(entry) as stream:
        if npy.read_magic(stream) == (1, 0):
            shape, _, kind = npy.read_array_header_1_0(stream)
        else:
            shape, _, kind = npy.read_array_header_2_0(stream)
        start = stream.tell()
    if kind.hasobject:
        raise DataError(
            f"{path}: '{name}' holds Python objects, which are never unpickled: save it as "
            "plain numbers or fixed-width strings"
        )
    numbers = math.prod(shape)
    large = numbers > LARGEST or numbers * kind.itemsize > LARGEST * WIDEST
    if min(shape, default=0) < 0 or large:
        raise DataError(f"{path}: '{name}' has shape {shape}: at most {LARGEST} numbers fit")
    if start + numbers * kind.itemsize != entry.file_size:
        raise DataError(f"{path}: '{name}' is not as long as its header says: get a new copy")


def _damaged(path: Path, failure: Exception) -> DataError:
    return DataError(f"{path} cannot be read as .npz ({failure}): get a new copy")
