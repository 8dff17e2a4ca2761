"""Digests of files, computed once a process for each file that stays as it is."""

import os
import threading
from hashlib import file_digest
from pathlib import Path

_KNOWN = dict[tuple[int, int, int, int, int], str]()
_LOCK = threading.Lock()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, 64 hexadecimal digits; each file is read once a process.

    A file that was replaced or written to in the meantime is read again: it has another inode,
    size or time of change.

    Raises:
        OSError: if it cannot be read.

    """
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        key = (
            status.st_dev,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
        )
        with _LOCK:
            known = _KNOWN.get(key)
        if known is None:
            known = file_digest(file, "sha256").hexdigest()
            with _LOCK:
                _KNOWN[key] = known
    return known
