"""Makes and removes folders and files, and follows no link below the output folder."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from overheard.core.errors import OutputError
from overheard.disk.links import explain_errors, link_error
from overheard.disk.open_folder import GROUP_FOLDER_MODE, open_folder


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


def give_to_group(path: Path, group: str | int) -> None:
    """Let a group read an output folder, and all that is put into it from now on.

    New files in it get the mode 0640 and new folders 2750, in place of 0600 and 0700.

    Args:
        path: the folder.
        group: the name or number of the group; the user must be in it.

    Raises:
        OutputError: if the group is unknown, or the folder may not be given to it.

    """
    number = group_number(group)
    with explain_errors(path), open_folder(path, inside=path) as folder:
        if folder.handle is not None:
            os.chown(folder.handle, -1, number)
            os.fchmod(folder.handle, GROUP_FOLDER_MODE)


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
        if above.handle is None:
            shutil.rmtree(path)
        else:
            shutil.rmtree(path.name, dir_fd=above.handle)


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
