"""Reads small files from outside: settings, truths, code of an app."""

import ast
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Never

from overheard.core.errors import AuditError
from overheard.disk.limits import (
    JSON,
    JSON_BYTE,
    LONG_NUMBER,
    MAX_DIGITS,
    SMALL_FILE,
    check_json,
    refuse_large,
)

MAX_HEX_DIGITS = 249
"""The most digits of a hexadecimal number, which then has at most 300 decimal ones."""

MAX_KEY_PARTS = 64
"""The most parts of a dotted key in TOML: its parser takes the square of their number."""

MAX_TABLES = 200_000
"""The most brackets and dots of a TOML text: its parser takes up to 850 bytes for each table
and each part of a dotted key."""

MAX_BRACES = 5000
"""The most braces of a source file: before 3.12, Python takes the square of their number."""

_LONG_TOML_NUMBER = re.compile(
    rf"[0-9_]{{{MAX_DIGITS + 1}}}|0x[0-9A-Fa-f_]{{{MAX_HEX_DIGITS + 1}}}"
)
_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}[ \t]*+\.[ \t]*+){{{MAX_KEY_PARTS}}}")


def read_small_file(
    path: Path,
    error: type[AuditError],
    *,
    inside: Path | None = None,
    part: int = SMALL_FILE,
    weight: int = 1,
) -> bytes:
    """Read a whole file that must be small.

    Args:
        path: the file.
        error: the class of the errors.
        inside: the folder that the file may not link out of; None = the folder of the file.
        part: its kind, which sets the most memory that it may take; see `disk.limits`.
        weight: bytes of memory that a byte of the file takes, at the least.

    Raises:
        AuditError: of class `error`, if the file is missing, no regular file, links to outside
            of the folder, is too large, or cannot be read.

    """
    folder = path.parent if inside is None else inside
    try:
        target = path.resolve()
        if not target.is_relative_to(folder.resolve()):
            raise error(
                f"{path} links to outside of its folder: replace the link by the file itself"
            )
        # Opened without waiting, as a named pipe would wait for a writer.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise error(f"{path} cannot be read, it is no regular file: name a file")
            refuse_large(str(path), weight * status.st_size, error, part=part)
            # A byte more, as the file may grow in the meantime.
            content = file.read(status.st_size + 1)
    except (OSError, RuntimeError, ValueError) as failure:
        why = failure.strerror if isinstance(failure, OSError) else failure
        raise error(f"{path} cannot be read ({why}): check the path") from failure
    if len(content) > status.st_size:
        raise error(f"{path} cannot be read: it grows: wait until it is written")
    return content


def read_text(
    path: Path,
    error: type[AuditError],
    *,
    inside: Path | None = None,
    part: int = SMALL_FILE,
) -> str:
    """Read a small text file in UTF-8; raise as `read_small_file`, or if it is no UTF-8.

    A mark of the byte order at its start, which some editors write, is left out.
    """
    content = read_small_file(path, error, inside=inside, part=part)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        raise error(f"{path} is no text in UTF-8 ({failure}): save it as UTF-8") from failure


def read_json_text(
    path: Path,
    error: type[AuditError],
    *,
    inside: Path | None = None,
    part: int = JSON,
) -> bytes:
    """Read a JSON file, to be parsed by a model; raise as `read_small_file`.

    Raises:
        AuditError: also if its values would take too much memory, or have too many digits.

    """
    content = read_small_file(path, error, inside=inside, part=part, weight=JSON_BYTE)
    check_json(content, str(path), error, part=part)
    return content


def parse_toml(
    text: str,
    place: str,
    error: type[AuditError],
    # Any: the values of a TOML document.
) -> Mapping[str, Any]:
    """Parse TOML; whatever the parser raises becomes an error that names the place."""
    if _LONG_TOML_NUMBER.search(text):
        raise error(f"{place}: not TOML that is read: {LONG_NUMBER}")
    if _LONG_KEY.search(text):
        raise error(f"{place}: not TOML that is read: a key has over {MAX_KEY_PARTS} parts")
    if text.count("[") + text.count(".") > MAX_TABLES:
        raise error(
            f"{place}: not TOML that is read: it has over {MAX_TABLES} brackets and dots"
        )
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError, MemoryError) as failure:
        raise error(f"{place}: not TOML: {failure or type(failure).__name__}") from failure


def parse_json(
    content: bytes,
    place: str,
    error: type[AuditError],
    *,
    part: int = JSON,
    make_object: Callable[[Sequence[tuple[str, object]]], object] | None = None,
    refuses_nan: bool = False,
    # Any: the values of a JSON document.
) -> Any:
    """Parse JSON; whatever the parser raises becomes an error that names the place.

    Args:
        content: the text.
        place: where it comes from.
        error: the class of the errors.
        part: its kind, see `disk.limits`.
        make_object: returns what an object becomes, by its keys and values; it may raise
            `ValueError`. None = a dictionary.
        refuses_nan: whether to refuse NaN and infinity, which are no JSON.

    """
    check_json(content, place, error, part=part)
    try:
        return json.loads(
            content.decode(),
            object_pairs_hook=make_object,
            parse_constant=_refuse_constant if refuses_nan else None,
        )
    except RecursionError as failure:
        raise _damaged(place, error, "it is nested too deeply") from failure
    except (json.JSONDecodeError, UnicodeDecodeError) as failure:
        raise _damaged(place, error, f"it is no JSON ({failure})") from failure
    except (ValueError, MemoryError) as failure:
        raise _damaged(place, error, str(failure) or type(failure).__name__) from failure


def parse_python(text: str) -> ast.Module:
    """Parse Python code from outside, which is never run.

    Raises:
        SyntaxError: if it is no Python, or is nested too deeply.

    """
    if text.count("{") > MAX_BRACES:
        raise SyntaxError(f"more than {MAX_BRACES} braces")
    try:
        return ast.parse(text)
    except (ValueError, RecursionError, MemoryError) as failure:
        raise SyntaxError(str(failure) or "too deeply nested") from failure


def parse_expression(text: str) -> ast.expr:
    """Parse an expression of Python from outside; raise as `parse_python`."""
    try:
        return ast.parse(text, mode="eval").body
    except (ValueError, RecursionError, MemoryError) as failure:
        raise SyntaxError(str(failure) or "too deeply nested") from failure


def parse_literal(node: ast.expr) -> object:
    """Return the value of an expression of plain values, such as numbers, texts and tuples.

    Raises:
        SyntaxError: if it is anything else.

    """
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError) as failure:
        raise SyntaxError(str(failure)) from failure


def _damaged(place: str, error: type[AuditError], why: str) -> AuditError:
    return error(f"{place} is damaged: {why}; correct it, or copy it again")


def _refuse_constant(constant: str) -> Never:
    raise ValueError(f"{constant} is not valid JSON")
