"""Tells of recordings that a command was not given."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from overheard.cli.terminal import escaped_text

if TYPE_CHECKING:  # so that --help need not load torch
    from overheard.archive.recordings import ListedRecording


def print_newer_recording(folder: Path | None) -> None:
    """Print a line on stderr if there is a newer recording beside it; None = no recording."""
    from overheard.archive.recordings import find_newer_recording

    newer = None if folder is None else find_newer_recording(folder)
    if newer is None:
        return
    is_absolute = folder is not None and folder.is_absolute()
    shown = newer.folder if is_absolute else _relative(newer.folder)
    _print(f"There is a newer recording: {shown} ({_describe(newer)}).")


def find_newest_recording(places: Iterable[Path]) -> Path | None:
    """Return the newest recording directly in these folders, and print a line that says so."""
    from overheard.archive.recordings import find_recordings

    found = {one.folder.resolve(): one for place in places for one in find_recordings(place)}
    newest = max(found.values(), key=lambda one: one.newest, default=None)
    if newest is None:
        return None
    others = f", the newest of {len(found)}" if len(found) > 1 else ""
    _print(
        f"Found the recording {newest.folder.resolve()} ({_describe(newest)}{others}). For "
        "another one: --from-recording FOLDER. To simulate a federation instead: --simulate"
    )
    return newest.folder


def _relative(folder: Path) -> Path:
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _describe(found: "ListedRecording") -> str:
    day = datetime.fromtimestamp(found.newest).astimezone()
    rounds = f"{found.rounds} round{'s' if found.rounds != 1 else ''}"
    return f"{rounds}, {day:%Y-%m-%d %H:%M}"


def _print(text: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(escaped_text(text))
