"""Makes and removes folders and files, and follows no link below the output folder."""

import shutil
from pathlib import Path

from overheard.disk.links import output_error, refuse_links


def make_folder(path: Path, *, inside: Path | None = None) -> None:
    """Make a folder and its missing parents, unless it exists.

    Args:
        path: the folder.
        inside: the output folder, which the user named and which may be a link itself; no
            folder between it and `path` may be one. None = `path` is the output folder.

    Raises:
        OutputError: if a part of the path is a link or a file, or the permissions do not allow
            it.

    """
    refuse_links(path, inside=inside)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(path, error) from error


def remove_folder(path: Path, *, inside: Path) -> None:
    """Remove a folder with all that is in it, if it exists; links in it are not followed.

    Raises:
        OutputError: if it is a link, or cannot be removed.

    """
    refuse_links(path, inside=inside)
    try:
        if path.exists():
            shutil.rmtree(path)
    except OSError as error:
        raise output_error(path, error) from error


def remove_file(path: Path, *, inside: Path) -> None:
    """Remove a file, if it exists; a link is removed, and not what it links to.

    Raises:
        OutputError: if a folder above it is a link, or it cannot be removed.

    """
    refuse_links(path.parent, inside=inside)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise output_error(path, error) from error
