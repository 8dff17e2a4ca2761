"""The note that a purge leaves in a folder; it says why data are missing."""

from pathlib import Path
from typing import Annotated, Literal, final

from pydantic import ConfigDict, Field, ValidationError

from overheard.archive.layout import manifest_path
from overheard.core.errors import OutputError
from overheard.disk.bounded_errors import BoundedModel, describe_errors
from overheard.disk.limits import SMALL_FILE
from overheard.disk.reading import read_json_text
from overheard.disk.writing import write_text

NOTE_FILE = "purged.json"

_Day = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]


class _Part(BoundedModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


@final
class RemovedEntry(_Part):
    """A file or folder that was removed.

    Args:
        name: its name in the folder that was purged.
        files: the number of files in it.
        bytes: their size.

    """

    name: Annotated[str, Field(max_length=300)]
    files: Annotated[int, Field(ge=0)]
    bytes: Annotated[int, Field(ge=0)]


@final
class PurgeNote(_Part):
    """What was removed from a folder, and when.

    Args:
        format: always "overheard purge".
        version: always 1.
        kind: what the folder was.
        purged_on: the day on which the last purge began.
        is_complete: False = a purge was interrupted.
        has_results: whether the page and the findings were kept.
        removed: what was removed, over all purges of the folder.

    """

    format: Literal["overheard purge"] = "overheard purge"
    version: Literal[1] = 1
    kind: Literal["audit", "recording"]
    purged_on: _Day
    is_complete: bool
    has_results: bool
    removed: Annotated[tuple[RemovedEntry, ...], Field(max_length=100)]

    def sentence(self, folder: Path) -> str:
        """Return what this means for whoever wants to use the folder."""
        if not self.is_complete:
            return (
                f"{folder}: a purge that began on {self.purged_on} was interrupted: run "
                "`overheard purge` again with this folder"
            )
        if self.kind == "recording":
            return (
                f"{folder} was purged on {self.purged_on}: its messages were removed, and "
                "nothing of it can be read or audited again"
            )
        results = "its results stay readable" if self.has_results else "its results, too"
        return (
            f"{folder} was purged on {self.purged_on}: its messages and claims were removed, "
            f"{results}, and nothing can be resumed"
        )


def write_purge_note(folder: Path, note: PurgeNote) -> None:
    """Write the note of a folder.

    Raises:
        OutputError: if the folder cannot be written.

    """
    write_text(folder / NOTE_FILE, note.model_dump_json(indent=1) + "\n", inside=folder)


def is_noted(folder: Path) -> bool:
    """Return whether a folder has the note of a purge, which may be damaged."""
    path = folder / NOTE_FILE
    return path.exists() or path.is_symlink()


def read_purge_note(folder: Path) -> PurgeNote | None:
    """Return the note of a folder; None if it was not purged.

    Raises:
        OutputError: if the note is damaged.

    """
    path = folder / NOTE_FILE
    if not is_noted(folder):
        return None
    content = read_json_text(path, OutputError, part=SMALL_FILE)
    try:
        return PurgeNote.model_validate_json(content)
    except ValidationError as error:
        first = describe_errors(error)[0]
        raise OutputError(
            f"{path}: not the note of a purge ({first['msg']}): restore it from a copy, or "
            "remove it if nothing was purged here"
        ) from error


def is_interrupted(folder: Path) -> bool:
    """Return whether a purge of a folder was interrupted, and no run was recorded there since.

    Raises:
        OutputError: if its note is damaged.

    """
    note = read_purge_note(folder)
    if note is None or note.is_complete:
        return False
    manifest = manifest_path(folder / "transcript")
    begun_at = (folder / NOTE_FILE).stat().st_mtime_ns
    return not manifest.is_file() or manifest.stat().st_mtime_ns <= begun_at


def find_purge(folder: Path) -> str:
    """Return why data may be missing in a folder, as a sentence; "" if nothing was purged.

    Args:
        folder: the folder of an audit, of a recording, or of a run within an audit.

    """
    folders = [folder]
    if folder.name == "transcript":
        folders.append(folder.parent)
    if folder.parent.name == "runs":
        folders.append(folder.parent.parent)
    for one in folders:
        note = read_purge_note(one)
        if note is not None:
            return note.sentence(one)
    return ""
