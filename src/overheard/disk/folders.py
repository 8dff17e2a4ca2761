"""Makes and removes folders and files, and follows no link below the output folder."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from overheard.core.errors import OutputError
from overheard.disk.open_folder import (
    GROUP_FOLDER_MODE,
    explain_errors,
    link_error,
    open_folder,
)


def make_folder(path: Path, *, inside: Path, is_private: bool = True) -> None:
    """Make a folder and its missing parents, unless it exists.

    Args:
        path: the folder.
        inside: the output folder, see `write_bytes`; it may be `path` itself.
        is_private: whether it is for the user alone, see `write_bytes`. A folder that exists
            keeps its permissions.

    Raises:
        OutputError: if a part of the path is a link or a file, or the permissions do not allow
            it.

    """
    with (
        explain_errors(path),
        open_folder(path, inside=inside, is_made=True, is_flushed=True, is_private=is_private),
    ):
        pass


def make_new_folder(path: Path, *, inside: Path) -> bool:
    """Make a folder, unless something of this name exists; return whether it was made.

    Of several processes that call it at once, it returns True to one alone.

    Raises:
        OutputError: as `make_folder`.

    """
    with (
        explain_errors(path),
        open_folder(path.parent, inside=inside, is_made=True, is_flushed=True) as folder,
    ):
        is_new = folder.make_folder(path.name)
        folder.flush()
        return is_new


def make_output_folder(path: Path, group: str | int | None = None) -> None:
    """Make an output folder, unless it exists, for the user alone or for a group as well.

    With a group, the folder gets the mode 2750, and so do the folders that are made in it;
    files get 0640. Without one, these are 0700 and 0600. A folder that exists keeps its mode.

    Args:
        path: the folder.
        group: the name or number of the group that may read the folder and all in it; the user
            must be in it. None = nobody else.

    Raises:
        OutputError: if the group is unknown, the folder cannot be made or given to the group,
            or it exists and its files are not for the group.

    """
    number = None if group is None else group_number(group)
    is_new = not path.exists()
    make_folder(path, inside=path)
    if number is None:
        return
    with explain_errors(path), open_folder(path, inside=path) as folder:
        if folder.handle is None:
            return
        if is_new:
            os.chown(folder.handle, -1, number)
            os.fchmod(folder.handle, GROUP_FOLDER_MODE)
        elif not folder.is_for_group(number):
            raise OutputError(
                f"{path}: new files in it are not for the group {group!r}: choose a folder "
                f"that does not exist, or run `chgrp {group} {path}` and `chmod 2750 {path}`"
            )


def group_number(group: str | int) -> int:
    """Return the number of a group, given its name or number.

    Raises:
        OutputError: if it is unknown, or the system has no groups.

    """
    if isinstance(group, int):
        return group
    try:
        # Windows has no such module.
        import grp

        return grp.getgrnam(group).gr_gid
    except (ImportError, KeyError) as error:
        raise OutputError(
            f"there is no group {group!r} on this system: name one that `getent group` lists"
        ) from error


def walk_folders(place: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Yield each folder in a folder, itself first, with the names of its folders and files.

    As `os.walk`: links are not followed, and folders that are removed from the list are left
    out. It works at any depth, where `os.walk` fails at a thousand before Python 3.12.
    """
    pending = [place]
    while pending:
        folder = pending.pop()
        names, files = list[str](), list[str]()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                (names if is_folder else files).append(entry.name)
        yield folder, names, files
        pending += [folder / name for name in reversed(names)]


def remove_folder(path: Path, *, inside: Path) -> None:
    """Remove a folder with all that is in it, if it exists; links in it are not followed.

    Raises:
        OutputError: if it is a link, or cannot be removed.

    """
    with (
        explain_errors(path),
        suppress(FileNotFoundError),
        open_folder(path.parent, inside=inside) as above,
    ):
        if above.is_link(path.name):
            raise link_error(path)
        try:
            if above.handle is None:
                shutil.rmtree(path)
            else:
                shutil.rmtree(path.name, dir_fd=above.handle)
        except RecursionError as error:
            raise OutputError(
                f"{path} has folders nested too deeply to be removed here: remove it by "
                f"`rm -r {path}`"
            ) from error


def remove_file(path: Path, *, inside: Path) -> None:
    """Remove a file, if it exists; a link is removed, and not what it links to.

    Raises:
        OutputError: if a folder above it is a link, or it cannot be removed.

    """
    with (
        explain_errors(path),
        suppress(FileNotFoundError),
        open_folder(path.parent, inside=inside) as above,
    ):
        above.unlink(path.name)
