"""The command `purge`, and what other commands say of purges that were made or are due."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from overheard.cli.exits import UsageError
from overheard.cli.options import QuietOption
from overheard.cli.terminal import escaped_text
from overheard.core.errors import OutputError

if TYPE_CHECKING:  # so that --help need not load torch
    from overheard.auditing.purging.due_purges import DueDates
    from overheard.auditing.purging.purge import Purge
    from overheard.plans.retention import Retention


RetentionOption = Annotated[
    str | None,
    typer.Option(
        "--retention",
        help="With --due: the retention of those that state none, as all recordings; such as "
        "'messages 30 days, results 3 years'.",
    ),
]


def purge(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders of audits or recordings; with --due, folders of these."),
    ] = None,
    due: Annotated[
        bool,
        typer.Option(
            "--due",
            help="Find the audits and recordings in the folders, at any depth, and remove what "
            "was stored for longer than their retention. Default: the current folder.",
        ),
    ] = False,
    retention: RetentionOption = None,
    results: Annotated[
        bool,
        typer.Option("--results", help="Remove the results of audits as well, with the page."),
    ] = False,
    run_is_over: Annotated[
        bool,
        typer.Option(
            "--run-is-over",
            help="Remove recordings without a mark of their end, to which no run writes now.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed; remove nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Remove updates, claims and caches of audits and recordings; keep the results.

    It says what it removes and asks before. Of an audit it removes the runs
    with their messages and ground truth, the claims of finished attacks (cells)
    and the simulations (bank). It keeps the page, the findings, the plan and the
    evidence. Of a recording it removes the transcript and the ground truth.
    A file purged.json says when this was done, and what was removed.

    The results still hold figures of single clients and their names. To hand
    results on, use `overheard release`. To remove them, add --results.

    With --due, the plan says how long data are stored, in its table release:

    \b
      \\[release]
      retention = "messages 30 days, results 3 years"

    \b
    Exit codes:
      0  it was removed, or nothing was to be removed
      1  you did not agree
      2  a folder is no audit and no recording, is damaged, is in use, or cannot
         be changed; with --due, all others were removed

    \b
    Examples:
      overheard purge audits/march --dry-run
      overheard purge audits/march recordings/march
      overheard purge --due audits --yes
      overheard purge --due recordings --retention "30 days" --dry-run

    """  # noqa: D301 - a backspace tells click to keep the lines
    from overheard.auditing.purging.purge import carry_out, plan_purge

    today = datetime.now(UTC).date()
    console = Console(highlight=False, soft_wrap=True, quiet=quiet)
    if not due and (retention is not None or not folders):
        raise UsageError(
            "--retention belongs to --due." if folders else "Name a folder, or give --due."
        )
    plan = partial(plan_purge, is_over=run_is_over)
    planned = [plan(one, with_results=results) for one in folders or () if not due]
    refused = list[OutputError]()
    if due:
        for dates in _print_dates(folders or [Path()], retention, today, console, refused):
            is_past = dates.are_results_due(today)
            if is_past or dates.are_messages_due(today) or dates.is_interrupted:
                with _collected(refused):
                    planned.append(plan(dates.folder, with_results=results or is_past))
    _print_plan(planned, console, is_due=due)
    planned = [one for one in planned if one.entries or one.is_interrupted]
    if planned and not dry_run:
        if not yes:
            _ask()
        for one in planned:
            with _collected(refused):
                console.print(escaped_text(f"{carry_out(one, today).sentence(one.folder)}."))
    if refused:
        # Last, so that one folder does not keep the data of all others.
        raise OutputError("\n".join(map(str, refused)))


def _ask() -> None:
    """Ask whether to go on; end the command if the answer is no."""
    if not sys.stdin.isatty():
        raise UsageError("Nobody can be asked here: add --yes to remove it.")
    if not typer.confirm("Remove this? It cannot be undone."):
        raise typer.Exit(1)


def _print_dates(
    places: Sequence[Path],
    retention: str | None,
    today: date,
    console: Console,
    refused: list[OutputError],
) -> "Sequence[DueDates]":
    """Print and return until when the audits and recordings in folders may be stored.

    The errors of those whose note of an earlier purge is damaged are appended to `refused`.
    """
    from overheard.auditing.purging.due_purges import DueDates, due_dates, find_folders

    otherwise = None if retention is None else _parse(retention)
    found = list[DueDates]()
    for place in places:
        if not place.is_dir():
            raise UsageError(f"{place}: there is no such folder.")
        for folder in find_folders(place):
            with _collected(refused):
                found.append(due_dates(folder, otherwise))
    for one in found:
        console.print(escaped_text(_due_sentence(one, today)))
    return found


@contextmanager
def _collected(refused: list[OutputError]) -> Iterator[None]:
    """Append the error of a folder to a list, so that the other folders come next."""
    try:
        yield
    except OutputError as error:
        refused.append(error)


def _parse(retention: str) -> "Retention":
    from overheard.plans.retention import parse_retention

    try:
        return parse_retention(retention)
    except ValueError as error:
        raise UsageError(f"--retention: {error}") from error


def _due_sentence(dates: "DueDates", today: date) -> str:
    if dates.is_interrupted:
        return f"{dates.folder}: a purge was interrupted, and is to be finished."
    if dates.note:
        return f"{dates.folder}: {dates.note}, so it is kept."
    parts = [
        f"{name} {'were due on' if day < today else 'are kept until'} {day}"
        for name, day in (("messages", dates.messages), ("results", dates.results))
        if day is not None
    ]
    return f"{dates.folder}: {'; '.join(parts) or 'nothing to remove'}."


def _print_plan(planned: "Sequence[Purge]", console: Console, *, is_due: bool) -> None:
    from overheard.findings.number_format import format_bytes

    if not planned and is_due:
        console.print("Nothing is due.")
    for one in planned:
        if not one.entries:
            console.print(escaped_text(f"{one.folder}: nothing to remove."))
            continue
        console.print(
            escaped_text(f"{one.folder}, {format_bytes(one.bytes)} are removed:"),
            style="bold",
        )
        for entry in one.entries:
            size = format_bytes(entry.bytes)
            console.print(
                escaped_text(f"  {entry.name:<14}  {entry.files:>7,} files  {size:>9}")
            )
        if one.kept:
            console.print(escaped_text(f"  Kept: {', '.join(one.kept)}"))


def print_purge(folder: Path, *, quiet: bool = False) -> None:
    """Print on stderr that an audit was purged, if it was.

    Args:
        folder: the folder of the audit, or its findings.
        quiet: whether to print nothing.

    """
    from overheard.archive.purge_note import find_purge

    said = "" if quiet else find_purge(folder if folder.is_dir() else folder.parent)
    if said:
        Console(stderr=True, highlight=False, soft_wrap=True).print(
            escaped_text(f"Note: {said}.")
        )


def print_due(folder: Path, console: Console) -> None:
    """Print until when the contents of an audit may be stored, if it states that.

    Args:
        folder: the folder of the audit, or of one of its runs.
        console: where to print.

    """
    from overheard.auditing.purging.due_purges import due_dates

    home = folder.parent.parent if folder.parent.name == "runs" else folder
    dates, today = due_dates(home), datetime.now(UTC).date()
    if dates.messages is None and dates.results is None:
        return
    is_past = dates.are_messages_due(today) or dates.are_results_due(today)
    sentence = f"Retention of {_due_sentence(dates, today)}"
    if is_past:
        sentence += f" Remove what is due: overheard purge --due {home}"
    console.print(Text.assemble((escaped_text(sentence).plain, "yellow" if is_past else "")))
