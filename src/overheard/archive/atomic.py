"""Writes a file whole or not at all."""

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from overheard.archive.past_cache import PastCache
from overheard.core.errors import OutputError

FLUSHED_AT_ONCE = 16

_MENDS = {
    errno.ENOSPC: "the disk is full: free space there or choose another folder",
    errno.EDQUOT: "your disk quota is used up: free space there or choose another folder",
    errno.EACCES: "you may not write there: choose another folder or ask for the permission",
    errno.EPERM: "you may not write there: choose another folder or ask for the permission",
    errno.EROFS: "that disk is read-only: choose another folder",
    errno.ENOTDIR: "a file stands where a folder is needed: move it or choose another folder",
    errno.EEXIST: "a file stands where a folder is needed: move it or choose another folder",
    errno.EISDIR: "a folder stands where a file is needed: move it or choose another folder",
    errno.ENAMETOOLONG: "the name is too long for that disk: choose a shorter path",
}


def write_bytes(path: Path, content: bytes) -> None:
    """Put this content under this name; makes the folders on the way.

    The content goes to `.<name>.part` beside it, is flushed to the disk and then renamed, so
    whoever looks finds the old file or the new one, never a half, even after a power cut.

    Raises:
        OutputError: if the disk or the permissions do not allow it; nothing is left behind.

    """
    with _told_and_cleared(path):
        _write(path, (content,), is_flushed=True)
        _flush(path.parent)


def write_ahead(
    path: Path, *content: bytes | memoryview, past_cache: PastCache | None = None
) -> None:
    """As `write_bytes`, piece by piece, though a power cut may take it before `flush`.

    To flush takes some 6 ms a file, one by one, and 2 ms a file for the ten of a round
    together (ext4 on a virtual disk).

    Args:
        path: of the file.
        content: of the file, one after the other.
        past_cache: what writes it, where nobody reads it soon; None = as ever.

    """
    with _told_and_cleared(path):
        _write(path, content, is_flushed=False, past_cache=past_cache)


def flush(paths: Sequence[Path]) -> None:
    """Make these files last; the folder's own list lasts once `write_bytes` wrote there.

    Raises:
        OutputError: if the disk refuses.

    """
    # The threads but wait: disks flush many files at once about as fast as one.
    with ThreadPoolExecutor(FLUSHED_AT_ONCE) as threads:
        for path, flushed in [(path, _begun(threads, path)) for path in paths]:
            try:
                flushed.result() if flushed else _flush(path)
            except OSError as error:
                raise output_error(path, error) from error


def write_text(path: Path, content: str) -> None:
    """Put this text under this name as UTF-8; all else as `write_bytes`."""
    write_bytes(path, content.encode())


def partial(path: Path) -> Path:
    """Where a file stands while it is being written."""
    return path.with_name(f".{path.name}.part")


def output_error(path: Path, error: OSError) -> OutputError:
    """Say what went wrong at this place, and the mend."""
    mend = _MENDS.get(
        error.errno or 0, f"{error.strerror or error}: check the disk and the path"
    )
    return OutputError(f"cannot write {path}: {mend}")


@contextmanager
def _told_and_cleared(path: Path) -> Iterator[None]:
    """Leave no part behind whatever happens, and tell the user what may be mended."""
    part = partial(path)
    try:
        yield
    except OSError as error:
        _discard(part)
        raise output_error(path, error) from error
    except BaseException:
        _discard(part)
        raise


def _write(
    path: Path,
    content: Iterable[bytes | memoryview],
    *,
    is_flushed: bool,
    past_cache: PastCache | None = None,
) -> None:
    part = partial(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if past_cache is not None:
        past_cache.write(part, content)
    else:
        with part.open("wb") as file:
            file.writelines(content)
            if is_flushed:
                file.flush()
                os.fsync(file.fileno())
    part.replace(path)


def _flush(path: Path) -> None:
    """Flush a file or, so that a rename lasts, a folder; only POSIX can, unopened to write."""
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _begun(threads: ThreadPoolExecutor, path: Path) -> Future[None] | None:
    """The flushing under way; None where the program is ending and begins no more threads."""
    try:
        return threads.submit(_flush, path)
    except RuntimeError:
        return None


def _discard(part: Path) -> None:
    # The first error is the one to tell; that the rest cannot be removed follows from it.
    try:
        part.unlink(missing_ok=True)
    except OSError:
        return
