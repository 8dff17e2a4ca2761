"""Finds recordings in a folder, the newest first."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import final

from overheard.archive.layout import (
    count_committed_rounds,
    manifest_path,
    messages_path,
    path_exists,
)
from overheard.archive.manifest import SIMULATION, Manifest, read_manifest
from overheard.archive.reader import read_round
from overheard.core.errors import AuditError

MOST_FOLDERS = 500
"""The most entries of a folder that are looked at."""

_COUNTED = re.compile(r"-\d+$")
"""What a recorder adds to the name of a folder that has a recording already."""


@final
@dataclass(frozen=True, slots=True)
class ListedRecording:
    """A recording with at least one round.

    Args:
        folder: the folder of its run.
        manifest: its manifest.
        rounds: number of its committed rounds.
        newest: when its last message was sent or received, in seconds since 1970; if messages
            have no times, when the last round was written.

    """

    folder: Path
    manifest: Manifest
    rounds: int
    newest: float


def find_recordings(place: Path) -> tuple[ListedRecording, ...]:
    """Return the recordings directly in a folder, the newest first.

    What Overheard simulated is left out, and what cannot be read.
    """
    try:
        folders = sorted(islice(place.iterdir(), MOST_FOLDERS))
    except OSError:
        return ()
    found = [one for folder in folders for one in _read(folder)]
    return tuple(sorted(found, key=lambda one: -one.newest))


def find_newer_recording(folder: Path) -> ListedRecording | None:
    """Return the newest recording beside this one, if it is newer and of the same federation.

    It is of the same federation if it has the same parties, or if its folder has the name that
    a recorder gives to the next run. Frameworks may number the parties of each run anew.

    Args:
        folder: the folder of a run or of its transcript.

    """
    run = folder.resolve()
    if path_exists(manifest_path(run)):
        run = run.parent
    own = next(_read(run), None)
    if own is None:
        return None
    for other in find_recordings(run.parent):
        if other.newest <= own.newest:
            return None
        is_next = _base_name(other.folder) == _base_name(run)
        if is_next or set(other.manifest.parties) == set(own.manifest.parties):
            return other
    return None


def _read(folder: Path) -> Iterator[ListedRecording]:
    """Yield the recording in a folder, if there is one that can be read."""
    try:
        if not path_exists(manifest_path(folder / "transcript")):
            return
        manifest, rounds = read_manifest(folder), count_committed_rounds(folder)
        if manifest.framework == SIMULATION or not rounds:
            return
        yield ListedRecording(folder, manifest, rounds, _newest(folder, rounds - 1))
    except (AuditError, OSError):
        return


def _newest(folder: Path, last: int) -> float:
    times = [one.times for one in read_round(folder, last) if one.times is not None]
    moments = [
        moment for one in times for moment in (one.sent, one.received) if moment is not None
    ]
    written = messages_path(folder / "transcript", last).stat().st_mtime
    return max(moments, default=written)


def _base_name(folder: Path) -> str:
    return _COUNTED.sub("", folder.name)
