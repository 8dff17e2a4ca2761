"""Finds audits and recordings, and says when their retention ends."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import final

from overheard.archive.layout import manifest_path
from overheard.archive.purge_note import is_interrupted
from overheard.auditing.purging.purge import (
    MESSAGES_OF_AUDIT,
    MESSAGES_OF_RECORDING,
    RESULTS_OF_AUDIT,
    is_purgeable,
)
from overheard.disk.folders import walk_folders
from overheard.plans.retention import Period, Retention, parse_retention

MESSAGES = (*MESSAGES_OF_AUDIT, *MESSAGES_OF_RECORDING)

MAX_HEAD_BYTES = 2**20
"""The day and the release are read from this much of `findings.json`, which begins with them:
a whole file may have gigabytes."""


@final
@dataclass(frozen=True, slots=True)
class DueDates:
    """Until when the contents of a folder may be stored.

    Args:
        folder: the folder of an audit or of a recording.
        made_on: the day from which its retention counts; None = not known.
        messages: last day of its messages, claims and caches; None = not stated, or there are
            none any more.
        results: last day of its results, likewise.
        note: why nothing is stated; "" = something is.
        is_interrupted: whether a purge of it was interrupted, which is then to be finished.

    """

    folder: Path
    made_on: date | None
    messages: date | None
    results: date | None
    note: str = ""
    is_interrupted: bool = False

    def are_messages_due(self, today: date) -> bool:
        """Return whether messages were stored for longer than allowed."""
        return self.messages is not None and self.messages < today

    def are_results_due(self, today: date) -> bool:
        """Return whether results were stored for longer than allowed."""
        return self.results is not None and self.results < today


def find_folders(place: Path) -> Iterator[Path]:
    """Yield the audits and recordings in a folder, at any depth; it may be one itself.

    Runs within an audit belong to it. Links are not followed.
    """
    for folder, names, _ in walk_folders(place):
        if is_purgeable(folder):
            names.clear()
            yield folder
        names.sort()


def due_dates(folder: Path, otherwise: Retention | None = None) -> DueDates:
    """Return until when the contents of a folder may be stored.

    Args:
        folder: the folder of an audit or of a recording.
        otherwise: the retention of a folder that states none.

    Raises:
        OutputError: if the note of a purge is damaged.

    """
    if is_interrupted(folder):
        return DueDates(folder, None, None, None, is_interrupted=True)
    made_on, stated = _audit_facts(folder)
    retention = otherwise
    if stated:
        try:
            retention = parse_retention(stated)
        except ValueError as error:
            return DueDates(folder, made_on, None, None, f"its retention is unclear: {error}")
    if retention is None:
        return DueDates(folder, made_on, None, None, "it states no retention")
    made_on = made_on or _day_of_writing(folder)
    if made_on is None:
        return DueDates(folder, None, None, None, "its day is not known")
    return DueDates(
        folder,
        made_on,
        _last_day(retention.messages, made_on, folder, MESSAGES),
        _last_day(retention.results, made_on, folder, RESULTS_OF_AUDIT),
    )


def _last_day(
    period: Period | None, made_on: date, folder: Path, names: Iterable[str]
) -> date | None:
    """Return the last day of a period; None = not stated, or nothing of these names is left."""
    is_there = any((folder / name).exists() for name in names)
    return period.after(made_on) if period is not None and is_there else None


def _audit_facts(folder: Path) -> tuple[date | None, str]:
    """Return the day and the retention that the findings state; None and "" if they do not."""
    try:
        with (folder / "findings.json").open("rb") as file:
            head = file.read(MAX_HEAD_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return None, ""
    values = dict(_values(head))
    release = values.get("release")
    retention = release.get("retention") if isinstance(release, dict) else None
    try:
        made_on = date.fromisoformat(str(values.get("made_on")))
    except ValueError:
        made_on = None
    return made_on, retention if isinstance(retention, str) else ""


def _values(head: str) -> Iterator[tuple[str, object]]:
    """Yield the keys and values of the first lines, each of which has one."""
    for line in head.splitlines()[1:]:
        if line.startswith(' "class_names"'):
            return
        try:
            yield from json.loads(f"{{{line.removesuffix(',')}}}").items()
        except (ValueError, RecursionError):
            continue


def _day_of_writing(folder: Path) -> date | None:
    """Return the day on which the manifest of a recording, or the plan, was written."""
    for path in (manifest_path(folder / "transcript"), folder / "plan.toml"):
        if path.is_file():
            return datetime.fromtimestamp(path.stat().st_mtime, UTC).date()
    return None
