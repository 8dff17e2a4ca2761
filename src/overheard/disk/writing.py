"""Writes files atomically, and follows no link below the output folder."""

import os
import re
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from overheard.core.errors import OutputError
from overheard.disk.direct_writer import DirectWriter, write_all
from overheard.disk.open_folder import explain_errors, open_folder, output_error

FLUSH_THREADS = 16

_PARTIAL_NAME = re.compile(r"\..+\.[0-9a-f]{16}\.part")


def write_bytes(path: Path, content: bytes, *, inside: Path, is_private: bool = True) -> None:
    """Write a file atomically; creates missing parent folders.

    The content is written to a new file beside it, whose name nobody can foretell, flushed to
    the disk and then renamed. Readers find the old file or the new one, never a part, even
    after a power cut. A link in place of the file is replaced, and never written through.

    Args:
        path: the file.
        content: its content.
        inside: the output folder, which the user named and which may be a link itself; no
            folder between it and the file may be one. For a file that the user named, it is the
            folder of that file.
        is_private: whether the file and new folders are for the user alone, or also for the
            group of a folder that `make_folder` gave to a group. False = the umask of the user
            decides, as for files that the user named.

    Raises:
        OutputError: if a folder is a link, the file is a device, a pipe or a socket, or the
            disk or the permissions do not allow it; nothing is left behind.

    """
    _write(path, content, inside, is_private=is_private)


def write_unflushed(
    path: Path,
    content: bytes,
    *,
    inside: Path,
    direct_writer: DirectWriter | None = None,
) -> None:
    """Write a private file as `write_bytes` does, but without flushing: see `flush_files`.

    A power cut before `flush_files` may lose the file. Flushing takes some 6 ms per file one by
    one, and 2 ms per file for the ten files of a round together (ext4 on a virtual disk).

    Args:
        path: the path of the file.
        content: its content.
        inside: the output folder, see `write_bytes`.
        direct_writer: writes past the page cache, for files that are not read soon; None =
            write normally.

    """
    _write(path, content, inside, is_flushed=False, direct_writer=direct_writer)


def flush_files(paths: Sequence[Path]) -> None:
    """Flush files, or the names in folders, to the disk.

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


def write_text(path: Path, content: str, *, inside: Path, is_private: bool = True) -> None:
    """Write text as UTF-8, as `write_bytes` does."""
    write_bytes(path, content.encode(), inside=inside, is_private=is_private)


def write_new_text(path: Path, content: str, *, inside: Path, is_private: bool = True) -> bool:
    """Write text as `write_text` does, unless something of this name exists.

    Returns:
        Whether the file was written. Of several processes at once, True for one alone.

    """
    return _write(path, content.encode(), inside, is_private=is_private, is_new=True)


def partial_path(path: Path) -> Path:
    """Return a new path for a file while it is being written: `.<name>.<random>.part`."""
    return path.with_name(f".{path.name}.{token_hex(8)}.part")


def is_partial(path: Path) -> bool:
    """Return whether a path is one of `partial_path`."""
    return _PARTIAL_NAME.fullmatch(path.name) is not None


def remove_partial_files(folder: Path, *, inside: Path) -> None:
    """Remove what killed processes left half written directly in a folder, if there is one.

    Call it only where no other process writes: see `folder_lock`.

    Raises:
        OutputError: if a folder is a link, or the permissions do not allow it.

    """
    with (
        explain_errors(folder),
        suppress(FileNotFoundError),
        open_folder(folder, inside=inside) as opened,
    ):
        for name in opened.names():
            if is_partial(folder / name):
                opened.unlink(name)


def _write(
    path: Path,
    content: bytes,
    inside: Path,
    *,
    is_flushed: bool = True,
    is_private: bool = True,
    is_new: bool = False,
    direct_writer: DirectWriter | None = None,
) -> bool:
    part = partial_path(path).name
    with (
        explain_errors(path),
        open_folder(
            path.parent,
            inside=inside,
            is_made=True,
            is_flushed=is_flushed,
            is_private=is_private,
        ) as folder,
    ):
        if folder.is_special(path.name):
            raise OutputError(
                f"cannot write {path}: it is a device, a pipe or a socket, which no file "
                "replaces: name another file"
            )
        try:
            handle = folder.create_file(part)
            try:
                if direct_writer is not None:
                    direct_writer.write(handle, content)
                else:
                    write_all(handle, content)
                if is_flushed:
                    os.fsync(handle)
            finally:
                os.close(handle)
            if not is_new:
                folder.rename(part, path.name)
            elif not folder.rename_new(part, path.name):
                folder.unlink(part)
                return False
        except BaseException:
            # The original error is reported; a failure to remove the file follows from it.
            with suppress(OSError):
                folder.unlink(part)
            raise
        if is_flushed:
            folder.flush()
        return True


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
