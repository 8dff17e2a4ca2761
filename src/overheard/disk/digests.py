"""Digests of files, computed once a process for each file that stays as it is."""

import os
import threading
import time
from hashlib import file_digest
from pathlib import Path

TRUST_VARIABLE = "OVERHEARD_TRUST_STORE"
"""The environment variable that skips comparisons; worker processes inherit it."""

HOW_TO_TRUST = "to use it as it is, add --trust-store"
"""What a user can do who knows why a file differs from its digest."""

CLOCK_TICK = 0.1
"""Seconds between two times that a file system tells apart, with room; Linux needs 0.01."""

_KNOWN = dict[tuple[int, ...], str]()
_LOCK = threading.Lock()


def is_store_trusted() -> bool:
    """Return whether stored files are read without being compared with their digests."""
    return os.environ.get(TRUST_VARIABLE, "") not in ("", "0")


def trust_store() -> None:
    """Compare no stored file from now on, in worker processes that start later too."""
    os.environ[TRUST_VARIABLE] = "1"


def sha256_of(path: Path, *, begin: int = 0) -> str:
    """Return the SHA-256 of a file, 64 hexadecimal digits; each file is read once a process.

    A file that was replaced or written to in the meantime is read again: it has another inode,
    size or time of change.

    Args:
        path: the path of the file.
        begin: the number of bytes at its beginning that are left out.

    Raises:
        OSError: if it cannot be read.

    """
    key = (*_state(os.stat(path)), begin)
    with _LOCK:
        known = _KNOWN.get(key)
    if known is not None:
        return known
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        file.seek(begin)
        digest = file_digest(file, "sha256").hexdigest()
    # A file that changed just now may change again, and show the same time.
    if time.time() - status.st_ctime > CLOCK_TICK:
        with _LOCK:
            _KNOWN[(*_state(status), begin)] = digest
    return digest


def _state(status: os.stat_result) -> tuple[int, ...]:
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
