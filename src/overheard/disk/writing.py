"""Writes files atomically, and follows no link below the output folder."""

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from overheard.disk.direct_writer import DirectWriter, open_new
from overheard.disk.links import output_error

FLUSH_THREADS = 16

_PARTIAL_NAME = re.compile(r"\..+\.[0-9a-f]{16}\.part")


def write_bytes(path: Path, content: bytes, *, inside: Path | None = None) -> None:
    """Write a file atomically; creates missing parent folders.

    The content is written to a new file beside it, whose name nobody can foretell, flushed to
    the disk and then renamed. Readers find the old file or the new one, never a part, even
    after a power cut. A link in place of the file is replaced, and never written through.

    Raises:
        OutputError: if the disk or the permissions do not allow it; nothing is left behind.

    """
    with _explain_errors(path):
        _write(path, content, is_flushed=True)
        _flush(path.parent)


def write_unflushed(
    path: Path, content: bytes, *, direct_writer: DirectWriter | None = None
) -> None:
    """Write a file as `write_bytes` does, but without flushing it: call `flush_files` later.

    A power cut before `flush_files` may lose the file. Flushing takes some 6 ms per file one by
    one, and 2 ms per file for the ten files of a round together (ext4 on a virtual disk).

    Args:
        path: the path of the file.
        content: its content.
        direct_writer: writes past the page cache, for files that are not read soon; None =
            write normally.

    """
    with _explain_errors(path):
        _write(path, content, is_flushed=False, direct_writer=direct_writer)


def flush_files(paths: Sequence[Path]) -> None:
    """Flush files to the disk; `write_bytes` flushes the folder entry.

    Raises:
        OutputError: if flushing fails.

    """
    # Threads, since disks flush many files at once about as fast as one.
    with ThreadPoolExecutor(FLUSH_THREADS) as threads:
        for path, future in [(path, _submit_flush(threads, path)) for path in paths]:
            try:
                future.result() if future else _flush(path)
            except OSError as error:
                raise output_error(path, error) from error


def write_text(path: Path, content: str, *, inside: Path | None = None) -> None:
    """Write text as UTF-8, as `write_bytes` does."""
    write_bytes(path, content.encode(), inside=inside)


def partial_path(path: Path) -> Path:
    """Return a new path for a file while it is being written: `.<name>.<random>.part`."""
    return path.with_name(f".{path.name}.{token_hex(8)}.part")


def is_partial(path: Path) -> bool:
    """Return whether a path is one of `partial_path`."""
    return _PARTIAL_NAME.fullmatch(path.name) is not None


def remove_partial_files(folder: Path) -> None:
    """Remove what killed processes left half written directly in a folder, if there is one.

    Call it only where no other process writes.

    Raises:
        OutputError: if the permissions do not allow it.

    """
    try:
        for path in folder.iterdir() if folder.is_dir() else ():
            if is_partial(path):
                path.unlink()
    except OSError as error:
        raise output_error(folder, error) from error


@contextmanager
def _explain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise output_error(path, error) from error


def _write(
    path: Path,
    content: bytes,
    *,
    is_flushed: bool,
    direct_writer: DirectWriter | None = None,
) -> None:
    part = partial_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        if direct_writer is not None:
            direct_writer.write(part, content)
        else:
            with open_new(part) as file:
                file.write(content)
                if is_flushed:
                    file.flush()
                    os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        _discard(part)
        raise


def _flush(path: Path) -> None:
    """Flush a file, or a folder so that a rename persists; does nothing unless on POSIX."""
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _submit_flush(threads: ThreadPoolExecutor, path: Path) -> Future[None] | None:
    """Start flushing a file; return None if the interpreter is shutting down."""
    try:
        return threads.submit(_flush, path)
    except RuntimeError:
        return None


def _discard(part: Path) -> None:
    # The original error is reported; a failure to remove the partial file follows from it.
    try:
        part.unlink(missing_ok=True)
    except OSError:
        return
