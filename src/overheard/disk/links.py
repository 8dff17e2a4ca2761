"""Refuses links below an output folder, and explains errors of the disk."""

import errno
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from overheard.core.errors import OutputError

_REMEDIES = {
    errno.ENOSPC: "the disk is full: free space there or choose another folder",
    errno.EDQUOT: "your disk quota is used up: free space there or choose another folder",
    errno.EACCES: "you may not write there: choose another folder or ask for the permission",
    errno.EPERM: "you may not write there: choose another folder or ask for the permission",
    errno.EROFS: "that disk is read-only: choose another folder",
    errno.ENOTDIR: "there is a file where a folder is needed: move it or choose another folder",
    errno.EEXIST: "there is a file where a folder is needed: move it or choose another folder",
    errno.EISDIR: "there is a folder where a file is needed: move it or choose another folder",
    errno.ENAMETOOLONG: "the name is too long for that disk: choose a shorter path",
}


def output_error(path: Path, error: OSError) -> OutputError:
    """Return an error with the path, the cause and a remedy."""
    remedy = _REMEDIES.get(
        error.errno or 0, f"{error.strerror or error}: check the disk and the path"
    )
    return OutputError(f"cannot write {path}: {remedy}")


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Raise errors of the disk as `output_error`."""
    try:
        yield
    except OSError as error:
        raise output_error(path, error) from error


def refuse_links(path: Path, *, inside: Path | None) -> None:
    """Check that no folder from below the output folder down to `path` is a link.

    Raises:
        OutputError: if one is, or `path` is outside of the output folder.

    """
    if inside is None or path == inside:
        return
    if inside not in path.parents or ".." in path.relative_to(inside).parts:
        raise OutputError(f"{path} is outside of {inside}: nothing is written there")
    below = [one for one in (path, *path.parents) if inside in one.parents]
    for one in reversed(below):
        try:
            status = one.lstat()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise output_error(one, error) from error
        if stat.S_ISLNK(status.st_mode):
            raise link_error(one)


def link_error(path: Path) -> OutputError:
    """Return the error for a link in place of a folder."""
    return OutputError(
        f"{path} is a link, and nothing is written or removed through a link below the output "
        "folder: remove the link, or choose another folder"
    )
