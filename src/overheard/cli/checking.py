"""Prints the verdicts of a policy on an audit."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from overheard.core.errors import OutputError
from overheard.findings.names import shorten
from overheard.gate.check import CheckResult
from overheard.gate.verdict import MAX_LENGTH, Status

STATUS_CODES: dict[Status, int] = {"pass": 0, "fail": 1, "inconclusive": 2}
"""The exit code of the command; a whole policy is never excused."""

HEADERS = ("subject", "value (95 %)", "limit", "reason")

_STYLES: dict[Status, str] = {
    "pass": "green",
    "fail": "bold red",
    "inconclusive": "bold yellow",
    "excused": "dim",
}


def refuse_to_overwrite(read: Iterable[Path | None], written: Iterable[Path | None]) -> None:
    """Refuse to write a file twice or to overwrite an input; None = no file.

    Raises:
        OutputError: if a path is given twice.

    """
    used = {path.resolve() for path in read if path is not None}
    for path in (path for path in written if path is not None):
        if path.resolve() in used:
            raise OutputError(
                f"{path}: is given twice: choose a different path for each output"
            )
        used.add(path.resolve())


def print_check_result(checked: CheckResult, console: Console) -> None:
    """Print one table per rule with one row per verdict, the notes and the overall status."""
    for (rule, score), verdicts in groupby(checked.verdicts, lambda one: (one.rule, one.score)):
        table = Table(
            Column("status", no_wrap=True),
            *(Column(head, overflow="fold") for head in HEADERS),
            box=SIMPLE_HEAD,
            title=_escaped(f"{rule}: {score}"),
            title_justify="left",
            title_style="bold",
        )
        for verdict in verdicts:
            table.add_row(
                Text(verdict.status, style=_STYLES[verdict.status]),
                *map(
                    _escaped, (verdict.subject, verdict.figure_text, verdict.limit, verdict.why)
                ),
            )
        console.print(table)
    for note in checked.notes:
        console.print(_escaped(note))
    console.print(Text(checked.summary, style=_STYLES[checked.status]))


def check_as_json(checked: CheckResult) -> str:
    """Return the status, the notes and every verdict as JSON."""
    content = {
        "title": checked.title,
        "status": checked.status,
        "summary": checked.summary,
        "notes": checked.notes,
        "verdicts": [
            asdict(one) | {"value": one.figure_text, "reason": one.why}
            for one in checked.verdicts
        ],
    }
    return json.dumps(content, indent=2, default=str)


def _escaped(text: str) -> Text:
    return Text(shorten(text, MAX_LENGTH))
