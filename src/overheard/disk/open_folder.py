"""Opens folders below an output folder without following a link; explains disk errors."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import final

from overheard.core.errors import OutputError

FILE_MODE = 0o600
FOLDER_MODE = 0o700

GROUP_FILE_MODE = 0o640
GROUP_FOLDER_MODE = 0o2750

OPENS_FOLDERS = (
    {os.open, os.mkdir, os.stat, os.unlink, os.rename} <= os.supports_dir_fd
    and hasattr(os, "O_DIRECTORY")
    and hasattr(os, "O_NOFOLLOW")
)
"""Whether the system works relative to an open folder, as all do but Windows."""

DEVICES = "/dev"
"""The folder of devices; what is in it belongs to the whole machine."""

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK

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


@final
@dataclass(frozen=True, slots=True)
class OpenFolder:
    """An open folder: whatever somebody puts in the place of its path, files go into it.

    Args:
        path: its path when it was opened.
        handle: its file descriptor; None = the system opens no folders, so that paths are used.
        is_private: whether new files and folders in it are for the user alone, or for the group
            of a folder that hands its group on; False = the umask of the user decides.

    """

    path: Path
    handle: int | None
    is_private: bool

    def create_file(self, name: str) -> int:
        """Create a file, and return its file descriptor for writing.

        Raises:
            OSError: if there is a file, a folder or a link of this name, or the disk or the
                permissions do not allow it.

        """
        if not self.is_private:
            return os.open(self._place(name), _NEW_FILE, 0o666, dir_fd=self.handle)
        file = os.open(self._place(name), _NEW_FILE, FILE_MODE, dir_fd=self.handle)
        mode = GROUP_FILE_MODE if self._hands_group_on() else FILE_MODE
        try:
            _set_mode(file, mode)
        except BaseException:
            os.close(file)
            raise
        return file

    def make_folder(self, name: str) -> bool:
        """Make a folder; return False if there is something of this name already."""
        mode = FOLDER_MODE if self.is_private else 0o777
        try:
            os.mkdir(self._place(name), mode, dir_fd=self.handle)
        except FileExistsError:
            return False
        if self.is_private and self.handle is not None:
            hands_on = self._hands_group_on()
            made = self._open(name)
            try:
                _set_mode(made, GROUP_FOLDER_MODE if hands_on else FOLDER_MODE)
            finally:
                os.close(made)
        return True

    def rename(self, old: str, new: str) -> None:
        """Rename a file; replace a file or a link of the new name."""
        os.replace(
            self._place(old), self._place(new), src_dir_fd=self.handle, dst_dir_fd=self.handle
        )

    def rename_new(self, old: str, new: str) -> bool:
        """Rename a file; return False if there is something of the new name already.

        Where the disk has no hard links, another process may get True at the same moment.
        """
        old_place, new_place = self._place(old), self._place(new)
        try:
            os.link(
                old_place,
                new_place,
                src_dir_fd=self.handle,
                dst_dir_fd=self.handle,
                follow_symlinks=False,
            )
        except FileExistsError:
            return False
        except OSError:
            if self._status(new) is not None:
                return False
            self.rename(old, new)
            return True
        self.unlink(old)
        return True

    def unlink(self, name: str) -> None:
        """Remove a file or a link, if there is one."""
        with suppress(FileNotFoundError):
            os.unlink(self._place(name), dir_fd=self.handle)

    def is_link(self, name: str) -> bool:
        """Return whether there is a link of this name."""
        status = self._status(name)
        return status is not None and stat.S_ISLNK(status.st_mode)

    def is_special(self, name: str) -> bool:
        """Return whether there is a device, a pipe or a socket of this name.

        So are the links in /dev, such as /dev/stdout.
        """
        status = self._status(name)
        if status is None or stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
            return False
        is_link = stat.S_ISLNK(status.st_mode)
        return not is_link or os.path.realpath(self.path) == DEVICES

    def names(self) -> list[str]:
        """Return the names of what is in it."""
        return os.listdir(self.path if self.handle is None else self.handle)

    def flush(self) -> None:
        """Flush the names in it to the disk, where the system can."""
        if self.handle is not None:
            os.fsync(self.handle)

    def descend(self, name: str) -> "OpenFolder":
        """Open a folder in it; the caller closes its handle.

        Raises:
            OutputError: if it is a link.
            OSError: if it is missing, is no folder or may not be read.

        """
        path = self.path / name
        if self.handle is None:
            return OpenFolder(path, _open_named(path), self.is_private)
        try:
            return OpenFolder(path, self._open(name), self.is_private)
        except OSError:
            # Systems differ in the error that they raise for a link.
            if self.is_link(name):
                raise link_error(path) from None
            raise

    def is_for_group(self, group: int) -> bool:
        """Return whether this group may read what is put into the folder."""
        return (
            self.handle is not None
            and os.fstat(self.handle).st_gid == group
            and self._hands_group_on()
        )

    def close(self) -> None:
        """Close it."""
        if self.handle is not None:
            os.close(self.handle)

    def _status(self, name: str) -> os.stat_result | None:
        """Return the status of a file, folder or link; None = there is none of this name."""
        try:
            return os.stat(self._place(name), dir_fd=self.handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _open(self, name: str) -> int:
        return os.open(name, _FOLDER | _NO_LINK, dir_fd=self.handle)

    def _place(self, name: str) -> str:
        return name if self.handle is not None else str(self.path / name)

    def _hands_group_on(self) -> bool:
        """Return whether the group of the folder may read what is put into it."""
        if self.handle is None:
            return False
        mode = os.fstat(self.handle).st_mode
        return bool(mode & stat.S_ISGID and mode & stat.S_IRGRP)


@contextmanager
def open_folder(
    path: Path,
    *,
    inside: Path,
    is_made: bool = False,
    is_flushed: bool = False,
    is_private: bool = True,
) -> Iterator[OpenFolder]:
    """Open a folder in an output folder, or the output folder itself.

    Each folder between both is opened inside the one above it. So a folder that is replaced by
    a link in the meantime is noticed, however quickly it happens. Windows has no such calls:
    there, the path is checked for links before it is used.

    Args:
        path: the folder.
        inside: the output folder, which the user named and which may be a link itself.
        is_made: whether missing folders are made; those above the output folder follow the
            umask of the user.
        is_flushed: whether new folders are flushed to the disk.
        is_private: whether what is made is for the user alone, see `OpenFolder`.

    Raises:
        OutputError: if a folder below the output folder is a link, or `path` is not in it.
        OSError: if a folder is missing, is no folder or may not be read.

    """
    if path == inside:
        parts: tuple[str, ...] = ()
    elif path.is_relative_to(inside) and ".." not in path.relative_to(inside).parts:
        parts = path.relative_to(inside).parts
    else:
        raise OutputError(f"{path} is outside of {inside}: nothing is written there")
    if not OPENS_FOLDERS:
        refuse_links(path, inside=inside)
    folder = _open_output_folder(
        inside, is_made=is_made, is_flushed=is_flushed, is_private=is_private
    )
    try:
        for part in parts:
            try:
                below = folder.descend(part)
            except FileNotFoundError:
                if not is_made:
                    raise
                if folder.make_folder(part) and is_flushed:
                    folder.flush()
                below = folder.descend(part)
            folder.close()
            folder = below
        yield folder
    finally:
        folder.close()


def _open_output_folder(
    path: Path, *, is_made: bool, is_flushed: bool, is_private: bool
) -> OpenFolder:
    try:
        return OpenFolder(path, _open_named(path), is_private)
    except FileNotFoundError:
        if not is_made or path.parent == path:
            raise
    above = _open_output_folder(
        path.parent, is_made=True, is_flushed=is_flushed, is_private=False
    )
    try:
        maker = OpenFolder(above.path, above.handle, is_private)
        if maker.make_folder(path.name) and is_flushed:
            maker.flush()
    finally:
        above.close()
    return OpenFolder(path, _open_named(path), is_private)


def _open_named(path: Path) -> int | None:
    if OPENS_FOLDERS:
        return os.open(path, _FOLDER)
    # Raises for what is missing or no folder, as opening it would.
    with os.scandir(path):
        return None


def _set_mode(handle: int, mode: int) -> None:
    # The umask may have taken permissions away; Windows has none of these.
    if hasattr(os, "fchmod"):
        os.fchmod(handle, mode)


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
