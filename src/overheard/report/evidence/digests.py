"""Digests of the files of a folder, to find out later which of them were changed."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Annotated, Literal, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from overheard.core.errors import OutputError
from overheard.disk.limits import SMALL_FILE
from overheard.disk.reading import read_json_text
from overheard.disk.writing import write_text

DIGESTS_FILE = "digests.json"

FORMAT = "overheard digests"

VERSION = 1

FileState = Literal["as written", "changed", "missing", "not listed"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


@final
class FileDigest(_Part):
    """The digest of one file.

    Args:
        name: its name in the folder.
        sha256: its SHA-256, in hexadecimal.
        size: its size in bytes.

    """

    # No separator of paths: a list may only name files of its own folder.
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
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
        state: "not listed" = it is in the folder, but the list does not say what it was.
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

    def state_of(self, name: str) -> FileState:
        """Return the state of the file of this name."""
        return next((one.state for one in self.files if one.name == name), "not listed")


def write_digests(folder: Path, names: Iterable[str]) -> None:
    """Write the digests of these files of a folder to its `digests.json`.

    The same files give the same bytes. Files that do not exist are left out.

    Raises:
        OutputError: if the folder cannot be written.

    """
    files = [
        {"name": name, "sha256": _digest(folder / name), "size": (folder / name).stat().st_size}
        for name in sorted(names)
        if (folder / name).is_file()
    ]
    content = {"format": FORMAT, "version": VERSION, "files": files}
    write_text(folder / DIGESTS_FILE, json.dumps(content, indent=1) + "\n", inside=folder)


def check_folder(folder: Path) -> CheckedFolder:
    """Compare the files of a folder with its `digests.json`.

    Only files beside the list are compared, not those in subfolders. A digest is no signature:
    whoever changes a file may change the list as well. So the digest of the list is returned,
    to compare it with one that was stored elsewhere.

    Raises:
        OutputError: if there is no list, it cannot be read, or it is damaged.

    """
    content = _read_list(folder / DIGESTS_FILE)
    try:
        listed = DigestList.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise OutputError(
            f"{folder / DIGESTS_FILE}: not a list of digests ({first['msg']}): restore the "
            "file from a copy, or run the command again that wrote the folder"
        ) from error
    names = {one.name for one in listed.files}
    others = sorted(
        one.name for one in folder.iterdir() if one.is_file() and one.name not in names
    )
    return CheckedFolder(
        folder,
        sha256(content).hexdigest(),
        (
            *(
                CheckedFile(one.name, _state(folder, one), one.sha256, one.size)
                for one in listed.files
            ),
            *(CheckedFile(name, "not listed") for name in others if name != DIGESTS_FILE),
        ),
    )


def _read_list(path: Path) -> bytes:
    if not path.is_file():
        raise OutputError(
            f"{path}: there is no such file, so that nothing can be compared: name the folder "
            "of an audit or of its evidence; `overheard audit`, run again, writes the file"
        )
    return read_json_text(path, OutputError, part=SMALL_FILE)


def _state(folder: Path, listed: FileDigest) -> FileState:
    path = folder / listed.name
    if not path.is_file():
        return "missing"
    is_same = path.stat().st_size == listed.size and _digest(path) == listed.sha256
    return "as written" if is_same else "changed"


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise OutputError(f"{path}: cannot be read: {error.strerror}") from error
