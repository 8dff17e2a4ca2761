"""Removes the messages, claims and caches of an audit or a recording, and keeps its results."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal, final

from overheard.archive.layout import manifest_path
from overheard.archive.purge_note import (
    PurgeNote,
    RemovedEntry,
    is_interrupted,
    is_noted,
    read_purge_note,
    write_purge_note,
)
from overheard.archive.run_end import has_ended
from overheard.auditing.folder import AuditFolder
from overheard.core.errors import OutputError, TranscriptError
from overheard.disk.folder_lock import lock_folder
from overheard.disk.folders import remove_file, remove_folder, walk_folders

MESSAGES_OF_AUDIT = ("cells", "bank", "runs", "followed.json", "pictures.html")
"""What an audit stores to be resumed: claims, simulations, and runs with messages and truth.

Pictures of claims are removed with them."""

RESULTS_OF_AUDIT = (
    "report.html", "findings.json", "findings.csv", "digests.json", "plan.toml", "evidence",
)  # fmt: skip
"""What tells the results of an audit."""

MESSAGES_OF_RECORDING = (
    "transcript", "truth.json", "seconds.json", "origin.json", "sha256.json", "node_names.json",
    "run_config.json",
)  # fmt: skip
"""What a recorder stores, and the ground truth beside it."""


@final
@dataclass(frozen=True, slots=True)
class Purge:
    """What a purge removes from a folder.

    Args:
        folder: the folder.
        kind: whether an audit or a recording is in it.
        entries: what is removed; () = nothing is left to be removed.
        kept: names of everything else in the folder.
        has_results: whether the results of an audit are kept.
        is_interrupted: whether an earlier purge of the folder was interrupted.

    """

    folder: Path
    kind: Literal["audit", "recording"]
    entries: tuple[RemovedEntry, ...]
    kept: tuple[str, ...]
    has_results: bool
    is_interrupted: bool

    @property
    def bytes(self) -> int:
        """How many bytes are removed."""
        return sum(one.bytes for one in self.entries)


def plan_purge(folder: Path, *, with_results: bool = False, is_over: bool = False) -> Purge:
    """Return what a purge of a folder would remove; change nothing.

    An interrupted purge that was to remove results is finished with them.

    Args:
        folder: the folder of an audit or of a recording.
        with_results: whether to remove the results of an audit as well.
        is_over: whether the user says that a recording without a mark of its end is over.

    Raises:
        OutputError: if the folder is of neither kind, or a run may still write to it.

    """
    kind = _kind(folder)
    if kind == "recording" and not is_over:
        _refuse_growing(folder)
    note, is_begun = read_purge_note(folder), is_interrupted(folder)
    if note is not None and is_begun:
        with_results = with_results or not note.has_results
    names: tuple[str, ...] = MESSAGES_OF_RECORDING
    if kind == "audit":
        names = MESSAGES_OF_AUDIT + (RESULTS_OF_AUDIT if with_results else ())
    entries = tuple(_measure(folder, name) for name in names if _is_there(folder / name))
    removed = {one.name for one in entries}
    kept = tuple(sorted(one.name for one in folder.iterdir() if one.name not in removed))
    has_results = kind == "audit" and not with_results
    return Purge(folder, kind, entries, kept, has_results, is_begun)


def carry_out(purge: Purge, today: date) -> PurgeNote:
    """Remove what a purge names, and leave a note in the folder.

    The note is written first, and completed last. So an interrupted purge is known as such, and
    can be run again. Links are removed, and not what they link to.

    Raises:
        OutputError: if the folder is in use, or something cannot be removed.

    """
    folder = purge.folder
    with lock_folder(folder):
        before = read_purge_note(folder)
        earlier = () if before is None else before.removed
        note = PurgeNote(
            kind=purge.kind,
            purged_on=today.isoformat(),
            is_complete=False,
            has_results=purge.has_results and (before is None or before.has_results),
            removed=_add_up((*earlier, *purge.entries)),
        )
        write_purge_note(folder, note)
        for entry in purge.entries:
            path = folder / entry.name
            if path.is_dir() and not path.is_symlink():
                remove_folder(path, inside=folder)
            else:
                remove_file(path, inside=folder)
        note = note.model_copy(update={"is_complete": True})
        write_purge_note(folder, note)
    return note


def is_purgeable(folder: Path) -> bool:
    """Return whether a folder is that of an audit or of a recording, purged or damaged or not.

    One that cannot be read counts: `plan_purge` says why.
    """
    return is_noted(folder) or AuditFolder(folder).is_reserved() or _has_manifest(folder)


def _kind(folder: Path) -> Literal["audit", "recording"]:
    """Return what a folder holds; an earlier purge may have removed its plan or manifest."""
    if not folder.is_dir():
        raise OutputError(f"{folder}: there is no such folder: name an audit or a recording")
    note = read_purge_note(folder)
    if note is not None:
        return note.kind
    if AuditFolder(folder).is_reserved():
        return "audit"
    if _has_manifest(folder):
        return "recording"
    raise OutputError(
        f"{folder}: has neither the plan.toml of an audit nor the transcript of a recording, "
        "so nothing is removed: name the folder of an audit or of a recording"
    )


def _has_manifest(folder: Path) -> bool:
    return manifest_path(folder / "transcript").is_file()


def _refuse_growing(folder: Path) -> None:
    """Refuse a recording to which a run may still write.

    Raises:
        OutputError: if nothing says that the run has ended.

    """
    if is_interrupted(folder) or not _has_manifest(folder):
        return
    try:
        is_ended = has_ended(folder)
    except TranscriptError:
        is_ended = False
    if not is_ended:
        raise OutputError(
            f"{folder}: has no mark of its end, so a run may still write to it: wait for the "
            "run, or say with --run-is-over that it is over"
        )


def _is_there(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _measure(folder: Path, name: str) -> RemovedEntry:
    """Return the number and the size of the files of an entry; a link counts as a file."""
    path = folder / name
    if not path.is_dir() or path.is_symlink():
        return RemovedEntry(name=name, files=1, bytes=path.lstat().st_size)
    files = [
        (inside / file).lstat().st_size for inside, _, own in walk_folders(path) for file in own
    ]
    return RemovedEntry(name=name, files=len(files), bytes=sum(files))


def _add_up(entries: Iterable[RemovedEntry]) -> tuple[RemovedEntry, ...]:
    """Return one entry a name.

    What an interrupted purge had measured and not removed is measured a second time, so that
    the larger figures of a name are those of the whole.
    """
    by_name = dict[str, RemovedEntry]()
    for one in entries:
        other = by_name.get(one.name, one)
        by_name[one.name] = max(one, other, key=lambda entry: (entry.files, entry.bytes))
    return tuple(by_name.values())
