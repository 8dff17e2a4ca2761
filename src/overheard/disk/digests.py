"""Digests of files, computed once a process for each file that stays as it is."""

import errno
import os
import stat
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from hashlib import file_digest
from io import BufferedReader
from pathlib import Path
from queue import Empty, SimpleQueue

from overheard.disk.limits import is_sparse

TRUST_VARIABLE = "OVERHEARD_TRUST_STORE"
"""The environment variable that skips comparisons; worker processes inherit it."""

HOW_TO_TRUST = "to use it as it is, add --trust-store"
"""What a user can do who knows why a file differs from its digest."""

NOT_COMPARED = ", not compared"
"""How the code of results ends that rest on files that were not compared."""

CLOCK_TICK = 0.1
"""Seconds between two times that a file system tells apart, with room; Linux needs 0.01."""

READERS = 2
"""Threads that compute digests ahead; a disk gives no more bytes to more of them."""

_KNOWN = dict[tuple[int, ...], str]()
_PENDING = dict[tuple[int, ...], Future[str]]()
_LOCK = threading.Lock()


def is_store_trusted() -> bool:
    """Return whether stored files are read without being compared with their digests."""
    return os.environ.get(TRUST_VARIABLE, "") not in ("", "0")


def trust_store() -> None:
    """Compare no stored file from now on, in worker processes that start later too."""
    os.environ[TRUST_VARIABLE] = "1"


def mark_of_trust() -> str:
    """Return `NOT_COMPARED` if the store is trusted, else ""."""
    return NOT_COMPARED if is_store_trusted() else ""


def usable_codes(code: str) -> tuple[str, ...]:
    """Return the code of each kind of result that code may use, its own first.

    An audit that trusts the store uses results of all audits. Others use only results of those
    that compared what they rest on.
    """
    return tuple(dict.fromkeys((code, code.removesuffix(NOT_COMPARED))))


def refuse_endless(path: Path) -> None:
    """Refuse what reading would not end with, such as a pipe, or a file that is mostly holes.

    Raises:
        OSError: if it is no regular file, or claims far more bytes than it stores.

    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    if is_sparse(path, status):
        raise OSError(errno.EINVAL, "it claims far more bytes than it stores", str(path))


def sha256_of(path: Path, *, begin: int = 0) -> str:
    """Return the SHA-256 of a file, 64 hexadecimal digits; each file is read once a process.

    A file that was replaced or written to in the meantime is read again: it has another inode,
    size or time of change.

    Args:
        path: the path of the file.
        begin: the number of bytes at its beginning that are left out.

    Raises:
        OSError: if it cannot be read, or reading would not end.

    """
    refuse_endless(path)
    with path.open("rb") as file:
        return _digest(file, begin)


def read_ahead(paths: Iterable[Path]) -> None:
    """Compute digests of files in the background, for `sha256_of`; return at once.

    Each core computes the digests of 2 GB in a second; `sha256_of` waits for the file that it
    is asked for alone. The process may end before the last digest.

    Args:
        paths: the files, in the order in which they will be read.

    """
    waiting = SimpleQueue[Path]()
    for path in paths:
        waiting.put(path)
    for _ in range(READERS):
        threading.Thread(target=_read_all, args=(waiting,), daemon=True).start()


def _read_all(waiting: SimpleQueue[Path]) -> None:
    while True:
        try:
            path = waiting.get_nowait()
        except Empty:
            return
        with suppress(OSError):  # who reads the file is told
            sha256_of(path)


def _digest(file: BufferedReader, begin: int) -> str:
    """Return the digest of an open file; another thread that computes it is waited for."""
    status = os.fstat(file.fileno())
    key = (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        begin,
    )
    with _LOCK:
        if key in _KNOWN:
            return _KNOWN[key]
        others = _PENDING.get(key)
        if others is None:
            mine = _PENDING[key] = Future[str]()
    if others is not None:
        return others.result()
    try:
        file.seek(begin)
        digest = file_digest(file, "sha256").hexdigest()
    except BaseException as error:
        with _LOCK:
            del _PENDING[key]
        mine.set_exception(error)
        raise
    with _LOCK:
        del _PENDING[key]
        # A file that changed just now may change again, and show the same time.
        if time.time() - status.st_ctime > CLOCK_TICK:
            _KNOWN[key] = digest
    mine.set_result(digest)
    return digest
