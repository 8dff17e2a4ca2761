"""Reads single arrays out of `.npz` files that nobody vouches for."""

import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int64, Shaped, UInt8

from overheard.archive.npz import (
    MOST_UNPACKED,
    SMALL,
    ZIP_FAILURES,
    ArrayHeader,
    is_bomb,
    read_content,
    read_header,
)
from overheard.core.errors import DataError
from overheard.core.spelled import spelled_out

LARGEST = 2**29
"""Numbers in one array at most (2 GiB as float32): a small file can promise far more."""

WIDEST = 8
"""Bytes a number takes at most; cells of words may be wider, if there are fewer of them."""

LONGEST_NAME = 100
"""Characters in the name of a class or a user at most; names are shown in reports."""

_LONGEST_TOLD = 1000
"""Characters of a file's own words that an error repeats at most."""

_KINDS = re.compile(
    r"[<>|=]?(b1|[iu][1248]|f(2|4|8|16)|U[1-9][0-9]{0,6}"
    r"|M8\[([YMWDhm]|[munpfa]?s)\])"
)

_LAST_LETTER = 0x10FFFF
"""Of Unicode. NumPy takes any number of four bytes for a letter, and fails where it is read."""


def array_names(path: Path) -> frozenset[str]:
    """Which arrays the file holds, by its own account.

    Raises:
        DataError: if the file is no `.npz`.

    """
    try:
        with zipfile.ZipFile(path) as archive:
            return frozenset(entry.removesuffix(".npy") for entry in archive.namelist())
    except ZIP_FAILURES as failure:
        raise _damaged(path, failure) from failure


def read_array(path: Path, name: str) -> Shaped[np.ndarray, "..."]:
    """One array of the file; its header is believed only as far as the file bears it out.

    Raises:
        DataError: if the file is damaged, lacks the array, or the array is too large, holds
            Python objects (those are never unpickled) or anything else than numbers, words or
            dates; before memory is taken for what a file of this size cannot honestly hold.

    """
    held = array_names(path)
    if name not in held:
        others = _told(", ".join(sorted(held))) or "none at all"
        raise DataError(f"{path} has no array '{name}', only {others}: give it that name")
    try:
        with zipfile.ZipFile(path) as archive:
            entry = archive.getinfo(f"{name}.npy")
            with archive.open(entry) as stream:
                header = read_header(stream.read)
                kind = _checked_kind(path, name, header, entry)
                array = read_content(stream.read, header, kind)
    except ZIP_FAILURES as failure:
        raise _damaged(path, failure) from failure
    if kind.kind == "U" and array.size:
        letters = array.ravel("K").view(f"{kind.byteorder}u4")
        if letters.max() > _LAST_LETTER:
            raise DataError(f"{path}: '{name}' holds what is no text: get a new copy")
    return array


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


def _checked_kind(
    path: Path, name: str, header: ArrayHeader, entry: zipfile.ZipInfo
) -> np.dtype[np.generic]:
    """What the numbers are, if the file can hold as many as the header says."""
    if header.kind.endswith("O"):
        raise DataError(
            f"{path}: '{name}' holds Python objects, which are never unpickled: save it as "
            "plain numbers or fixed-width strings"
        )
    if not _KINDS.fullmatch(header.kind):
        raise DataError(
            f"{path}: '{name}' holds {_told(repr(header.kind))}, which NumPy knows neither as "
            "numbers nor as words or dates: save it as one of them"
        )
    kind, numbers = np.dtype(header.kind), header.count
    if numbers > LARGEST or numbers * kind.itemsize > LARGEST * WIDEST:
        raise DataError(
            f"{path}: '{name}' has shape {_told(str(header.shape))}: at most {LARGEST} numbers "
            "fit"
        )
    if header.start + numbers * kind.itemsize != entry.file_size:
        raise DataError(f"{path}: '{name}' is not as long as its header says: get a new copy")
    packed = min(entry.compress_size, path.stat().st_size)
    if is_bomb(entry.file_size, packed):
        raise DataError(
            f"{path}: '{name}' has {packed} bytes and unpacks to {entry.file_size}, more than "
            f"{MOST_UNPACKED} times as many and more than {SMALL}: if those are your data, "
            "save them by numpy.savez, not savez_compressed"
        )
    return kind


def _told(text: str) -> str:
    """The file's own words, fit for an error."""
    return spelled_out(text[:_LONGEST_TOLD])


def _damaged(path: Path, failure: Exception) -> DataError:
    said = _told(str(failure)) or type(failure).__name__
    return DataError(f"{path} cannot be read as .npz ({said}): get a new copy")
