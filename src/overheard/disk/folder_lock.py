"""A lock that keeps two processes from writing to one folder."""

import errno
import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from overheard.core.errors import OutputError
from overheard.core.escape import escape_unprintable
from overheard.disk.folders import make_folder, walk_folders
from overheard.disk.open_folder import FILE_MODE, output_error
from overheard.disk.writing import remove_partial_files

LOCK_FILE = "in-use.json"

MAX_LOCK_BYTES = 1000
"""More of the lock file is not read."""

LOCKS_MISSING = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is created if it does not exist.

    What a killed process left half written in it is removed, except in transcripts: who
    continues one does that.

    The operating system releases the lock when the process ends, however it ends. So a file
    that a killed process left behind keeps nobody out. Where files cannot be locked, as on some
    network disks, a warning says so, and nothing is locked.

    Raises:
        OutputError: if another process, or another thread, holds the lock, the lock file is a
            link, or the folder cannot be written.

    """
    path = folder / LOCK_FILE
    # It opens no link, and writes through the file that it has locked.
    lock = FileLock(
        path, mode=FILE_MODE, blocking=False, fallback_to_soft=False, on_acquired=_write_holder
    )
    make_folder(folder, inside=folder)
    try:
        lock.acquire()
    except Timeout as error:
        raise OutputError(_describe_holder(path)) from error
    except OSError as error:
        if error.errno not in LOCKS_MISSING:
            raise output_error(path, error) from error
        path.unlink(missing_ok=True)
        warnings.warn(
            f"{folder} cannot be locked: start no other audit with this folder", stacklevel=3
        )
    try:
        for place, names, _ in walk_folders(folder) if lock.is_locked else ():
            names[:] = [name for name in names if name != "transcript"]  # as it may be huge
            remove_partial_files(place, inside=folder)
        yield
    finally:
        # Removed while it is locked: nobody else can have locked this file in the meantime.
        with suppress(OSError):  # Windows removes no open file
            path.unlink(missing_ok=True)
        lock.release()


def _write_holder(handle: int) -> None:
    # What is planted there may be a second name of a file elsewhere.
    if os.fstat(handle).st_nlink > 1:
        raise OutputError(
            f"{LOCK_FILE} in the output folder is a hard link, and nothing is written through "
            "it: remove it, or choose another folder"
        )
    state = {"pid": os.getpid(), "since": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"}
    os.ftruncate(handle, 0)
    os.write(handle, json.dumps(state).encode())


def _describe_holder(path: Path) -> str:
    """Return an error message that names the process that holds the lock."""
    try:
        with path.open("rb") as file:
            state = json.loads(file.read(MAX_LOCK_BYTES))
        since = escape_unprintable(str(state["since"])[:30])
        holder = f" since {since}, process {int(state['pid'])}"
    except (OSError, ValueError, KeyError, TypeError):
        holder = ""  # it has just begun
    return (
        f"{path.parent}: another process works here{holder}: wait until it ends, or choose "
        "another folder with --out"
    )
