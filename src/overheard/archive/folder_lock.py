"""A lock that keeps two processes from writing to one folder."""

import errno
import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from overheard.archive.atomic import output_error, remove_partial_files
from overheard.core.errors import OutputError
from overheard.core.escape import escape_unprintable

LOCK_FILE = "in-use.json"

MAX_LOCK_BYTES = 1000
"""More of the lock file is not read."""

BUSY = (errno.EAGAIN, errno.EACCES)

LOCKS_MISSING = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is created if it does not exist.

    What a killed process left half written in it is removed, except in transcripts: who
    continues one does that.

    The operating system releases the lock when the process ends, however it ends. So a file
    that a killed process left behind keeps nobody out. Where files cannot be locked, as on some
    network disks and on Windows, a warning says so, and nothing is locked.

    Raises:
        OutputError: if another process, or another thread, holds the lock, or the folder cannot
            be written.

    """
    path = folder / LOCK_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = _acquire(path)
    except OSError as error:
        raise output_error(path, error) from error
    if handle is None:
        warnings.warn(
            f"{folder} cannot be locked: start no other audit with this folder", stacklevel=3
        )
        yield
        return
    try:
        state = {"pid": os.getpid(), "since": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"}
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps(state).encode())
        for inside, names, _ in os.walk(folder):
            names[:] = [name for name in names if name != "transcript"]  # as it may be huge
            remove_partial_files(Path(inside))
        yield
    finally:
        # Removed while it is locked: nobody else can have locked this file in the meantime.
        path.unlink(missing_ok=True)
        os.close(handle)


def _acquire(path: Path) -> int | None:
    """Open and lock the file; return None if files cannot be locked there."""
    locks = _file_locks()
    if locks is None:
        return None
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            locks.flock(handle, locks.LOCK_EX | locks.LOCK_NB)
            # Its last holder may have removed the file before it was locked here.
            if _is_at(handle, path):
                return handle
        except OSError as error:
            if error.errno in BUSY:
                message = _describe_holder(handle, path.parent)
                os.close(handle)
                raise OutputError(message) from error
            os.close(handle)
            if error.errno in LOCKS_MISSING:
                path.unlink(missing_ok=True)
                return None
            raise
        os.close(handle)


# Any: the module `fcntl`, which Windows does not have.
def _file_locks() -> Any | None:
    return import_module("fcntl") if os.name == "posix" else None


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _describe_holder(handle: int, folder: Path) -> str:
    """Return an error message that names the process that holds the lock."""
    try:
        state = json.loads(os.pread(handle, MAX_LOCK_BYTES, 0))
        since = escape_unprintable(str(state["since"])[:30])
        holder = f" since {since}, process {int(state['pid'])}"
    except (ValueError, KeyError, TypeError):
        holder = ""  # it has just begun
    return (
        f"{folder}: another audit works here{holder}: wait until it ends, or choose another "
        "folder with --out"
    )
