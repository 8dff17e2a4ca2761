"""Digests of the files of a folder, to find out later which of them were changed.

The list of an audit also has the digest of the list of its evidence. So the digest of the
audit's list covers all that is published.
"""

import json
import os
import stat
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from hashlib import file_digest, sha256
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Literal, final

from pydantic import ConfigDict, Field, ValidationError, model_validator

from overheard.archive.repeated_keys import refuse_repeated_keys
from overheard.core.errors import FindingsError, OutputError
from overheard.disk.bounded_errors import BoundedModel, describe_errors
from overheard.disk.folder_lock import LOCK_FILE
from overheard.disk.limits import SMALL_FILE
from overheard.disk.reading import read_json_text
from overheard.disk.writing import write_text

DIGESTS_FILE = "digests.json"

FINDINGS_FILE = "findings.json"

EVIDENCE_FOLDER = "evidence"
"""The folder within an audit to which evidence is written by default."""

EVIDENCE_LIST = f"{EVIDENCE_FOLDER}/{DIGESTS_FILE}"
"""How the list of an audit names the list of its evidence."""

NOT_PUBLISHED = {
    **dict.fromkeys(("runs", "cells", "bank"), stat.S_IFDIR),
    **dict.fromkeys((LOCK_FILE, "followed.json", "purged.json"), stat.S_IFREG),
}
"""What else Overheard writes to the folder of an audit, and as what kind of file. It is not
compared. Anything else of these names, such as a page or a link, counts as added."""

FORMAT = "overheard digests"

VERSION = 1

FileState = Literal["as written", "changed", "missing", "a link", "no file", "not listed"]


class _Part(BoundedModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


@final
class FileDigest(_Part):
    """The digest of one file.

    Args:
        name: its name in the folder, or `EVIDENCE_LIST`.
        sha256: its SHA-256, in hexadecimal.
        size: its size in bytes.

    """

    # No other separator of paths: a list may only name files of its own folder.
    name: Annotated[
        str,
        Field(
            pattern=rf"^([A-Za-z0-9][A-Za-z0-9_.-]{{0,99}}|{EVIDENCE_FOLDER}/{DIGESTS_FILE})$"
        ),
    ]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]


@final
class DigestList(_Part):
    """The digests of the files of a folder, each file once."""

    format: Literal["overheard digests"]
    version: Literal[1]
    files: Annotated[tuple[FileDigest, ...], Field(min_length=1, max_length=1000)]

    @model_validator(mode="after")
    def _check_unique_names(self) -> "DigestList":
        names = {one.name for one in self.files}
        if len(names) < len(self.files) or DIGESTS_FILE in names:
            raise ValueError("a file is listed twice, or the list lists itself")
        return self


@final
@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file, and whether it is as it was written.

    Args:
        name: its name in the folder.
        state: "a link" = it was replaced by a link; "no file" = by a folder or the like; "not
            listed" = it is in the folder, but the list does not say what it was.
        sha256: the SHA-256 that the list states; "" = it states none.
        size: the size in bytes that the list states; 0 if it states none.

    """

    name: str
    state: FileState
    sha256: str = ""
    size: int = 0


@final
@dataclass(frozen=True, slots=True)
class CheckedFolder:
    """The files of a folder, compared with its list of digests.

    Args:
        path: the folder.
        sha256: the SHA-256 of the list itself, in hexadecimal.
        files: the listed files in order, then those that are not listed.

    """

    path: Path
    sha256: str
    files: tuple[CheckedFile, ...]

    @property
    def is_as_written(self) -> bool:
        """Whether every listed file is as it was written."""
        return all(one.state in ("as written", "not listed") for one in self.files)

    @property
    def has_additions(self) -> bool:
        """Whether there is a file that is not listed."""
        return any(one.state == "not listed" for one in self.files)

    def state_of(self, name: str) -> FileState:
        """Return the state of the file of this name."""
        return next((one.state for one in self.files if one.name == name), "not listed")


def write_digests(folder: Path, names: Iterable[str], *, is_private: bool = True) -> None:
    """Write the digests of these files of a folder to its `digests.json`.

    The same files give the same bytes. Files that do not exist are left out. The list of
    evidence that was made from the same findings stays listed.

    Args:
        folder: the folder.
        names: the names of the files.
        is_private: whether the list is for the user alone, see `write_bytes`.

    Raises:
        OutputError: if the folder cannot be written.

    """
    files = [
        _digest_file(folder / name, name) for name in sorted(names) if (folder / name).is_file()
    ]
    earlier = _listed_earlier(folder)
    if any(one in files for one in earlier if one.name == FINDINGS_FILE):
        files += [one for one in earlier if one.name == EVIDENCE_LIST]
    _write_list(folder, files, is_private=is_private)


def list_evidence(folder: Path, *, is_private: bool) -> None:
    """Add the list of the evidence in the folder of an audit to the list of the audit.

    Args:
        folder: the folder of the audit.
        is_private: whether the list is for the user alone, see `write_bytes`.

    Raises:
        OutputError: if a list is missing or damaged, or the folder cannot be written.

    """
    listed = _parse_list(folder / DIGESTS_FILE, _read_list(folder / DIGESTS_FILE))
    files = [one for one in listed.files if one.name != EVIDENCE_LIST]
    files.append(_digest_file(folder / EVIDENCE_LIST, EVIDENCE_LIST))
    _write_list(folder, files, is_private=is_private)


def _listed_earlier(folder: Path) -> Collection[FileDigest]:
    """Return the entries of the list in a folder; none if it has no valid list."""
    path = folder / DIGESTS_FILE
    try:
        return _parse_list(path, _read_list(path)).files
    except OutputError:
        return ()


def _digest_file(path: Path, name: str) -> FileDigest:
    with _open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        return FileDigest(name=name, sha256=file_digest(file, "sha256").hexdigest(), size=size)


def _write_list(folder: Path, files: Iterable[FileDigest], *, is_private: bool) -> None:
    content = {
        "format": FORMAT,
        "version": VERSION,
        "files": [one.model_dump() for one in files],
    }
    text = json.dumps(content, indent=1) + "\n"
    write_text(folder / DIGESTS_FILE, text, inside=folder, is_private=is_private)


def check_published(folder: Path) -> tuple[CheckedFolder, ...]:
    """Compare the files of a folder, and of the evidence in it, with their lists of digests.

    A digest is no signature: whoever changes a file may change the lists as well. So the digest
    of each list is returned, to compare that of the first one, which covers the other, with
    one that was stored elsewhere.

    Raises:
        OutputError: if there is no list, or one cannot be read or is damaged.

    """
    first = check_folder(folder)
    inner = folder / EVIDENCE_FOLDER
    path = inner / DIGESTS_FILE
    has_evidence = path.is_file() and not inner.is_symlink() and not path.is_symlink()
    return (first, check_folder(inner)) if has_evidence else (first,)


def check_unchanged(folder: Path) -> CheckedFolder:
    """Return the files of an audit that are as it wrote them; evidence in it is left out.

    Raises:
        FindingsError: if a file was changed, replaced or removed.
        OutputError: if there is no list of digests, or it is damaged.

    """
    checked = check_folder(folder)
    files = tuple(
        one for one in checked.files if one.name not in (EVIDENCE_LIST, EVIDENCE_FOLDER)
    )
    for one in files:
        if one.state not in ("as written", "not listed"):
            raise FindingsError(
                f"{folder / one.name}: was changed after the audit wrote it (state: "
                f"{one.state}), so that nothing is made of it: restore the file from a copy, "
                "or run `overheard audit` again with the same plan and folder, which reuses "
                "all results"
            )
    return replace(checked, files=files)


def check_folder(folder: Path) -> CheckedFolder:
    """Compare the files of a folder with its `digests.json`.

    Of the evidence in an audit only the list is compared. Whatever else is in the folder is
    not listed, apart from what is not published.

    Raises:
        OutputError: if there is no list, it cannot be read, or it is damaged.

    """
    content = _read_list(folder / DIGESTS_FILE)
    listed = _parse_list(folder / DIGESTS_FILE, content).files
    names = {one.name for one in listed}
    is_audit = FINDINGS_FILE in names
    known = {*names, DIGESTS_FILE}
    if EVIDENCE_LIST in names:
        known.add(EVIDENCE_FOLDER)
    others = [
        name
        for name in _names_in(folder)
        if name not in known and not (is_audit and _is_unpublished(folder / name))
    ]
    return CheckedFolder(
        folder,
        sha256(content).hexdigest(),
        (
            *(
                CheckedFile(one.name, _state(folder, one), one.sha256, one.size)
                for one in listed
            ),
            *(CheckedFile(name, "not listed") for name in others),
        ),
    )


def _is_unpublished(path: Path) -> bool:
    return stat.S_IFMT(path.lstat().st_mode) == NOT_PUBLISHED.get(path.name)


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise OutputError(f"{folder}: cannot be read: {error.strerror}") from error


def _parse_list(path: Path, content: bytes) -> DigestList:
    try:
        refuse_repeated_keys(content)
        return DigestList.model_validate_json(content)
    except ValueError as error:
        first = (
            describe_errors(error)[0]["msg"]
            if isinstance(error, ValidationError)
            else str(error)
        )
        raise OutputError(
            f"{path}: not a list of digests ({first}): restore the file from a copy, or run "
            "the command again that wrote the folder"
        ) from error


def _read_list(path: Path) -> bytes:
    if path.is_symlink():
        raise OutputError(f"{path}: is a link: replace it by the file itself")
    if not path.is_file():
        raise OutputError(
            f"{path}: there is no such file, so that nothing can be compared: name the folder "
            "of an audit or of its evidence; `overheard audit`, run again, writes the file"
        )
    return read_json_text(path, OutputError, part=SMALL_FILE)


def _state(folder: Path, listed: FileDigest) -> FileState:
    path = folder
    for part in listed.name.split("/"):
        # By the names in the folder, as some disks find a file by a name in other letters.
        if not path.is_dir() or part not in _names_in(path):
            return "missing"
        path /= part
        if path.is_symlink():
            return "a link"
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        return "no file"
    # A file of another size is not read, as it may be huge.
    is_same = status.st_size == listed.size and _digest_file(path, listed.name) == listed
    return "as written" if is_same else "changed"


def _open_plain(path: Path) -> BufferedReader:
    """Open a regular file, and no link."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        return os.fdopen(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb")
    except OSError as error:
        raise OutputError(f"{path}: cannot be read: {error.strerror}") from error
