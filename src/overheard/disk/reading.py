"""Reads small files from outside: settings, truths, code of an app."""

import json
import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from overheard.core.errors import AuditError

MAX_SMALL_BYTES = 2**24
"""Largest small file in bytes, unless a caller sets another limit."""


def read_small_file(
    path: Path,
    error: type[AuditError],
    *,
    inside: Path | None = None,
    limit: int = MAX_SMALL_BYTES,
) -> bytes:
    """Read a whole file that must be small.

    Args:
        path: the file.
        error: the class of the errors.
        inside: the folder that the file may not link out of; None = the folder of the file.
        limit: the most bytes to read.

    Raises:
        AuditError: of class `error`, if the file is missing, no regular file, links to outside
            of the folder, is too large, or cannot be read.

    """
    folder = path.parent if inside is None else inside
    try:
        target = path.resolve()
        if not target.is_relative_to(folder.resolve()):
            raise error(f"{path} links to outside of its folder: name {target} itself")
        # Opened without waiting, as a named pipe would wait for a writer.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise error(f"{path} is no regular file: name a file")
            content = file.read(limit + 1)
    except (OSError, RuntimeError) as failure:
        why = failure.strerror if isinstance(failure, OSError) else failure
        raise error(f"{path} cannot be read ({why}): check the path") from failure
    if len(content) > limit:
        raise error(f"{path} has more than {limit} bytes, which are the most that are read")
    return content


def read_text(
    path: Path,
    error: type[AuditError],
    *,
    inside: Path | None = None,
    limit: int = MAX_SMALL_BYTES,
) -> str:
    """Read a small text file in UTF-8; raise as `read_small_file`, or if it is no UTF-8."""
    content = read_small_file(path, error, inside=inside, limit=limit)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as failure:
        raise error(f"{path} is no text in UTF-8 ({failure}): save it as UTF-8") from failure


def parse_toml(
    text: str,
    place: str,
    error: type[AuditError],
    # Any: the values of a TOML document.
) -> Mapping[str, Any]:
    """Parse TOML; whatever the parser raises becomes an error that names the place."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError, MemoryError) as failure:
        raise error(f"{place}: not TOML: {failure or type(failure).__name__}") from failure


def parse_json(
    content: bytes | str,
    place: str,
    error: type[AuditError],
    # Any: the values of a JSON document.
) -> Any:
    """Parse JSON; whatever the parser raises becomes an error that names the place."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError, MemoryError) as failure:
        raise error(f"{place}: not JSON: {failure or type(failure).__name__}") from failure
