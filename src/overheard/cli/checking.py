"""Prints what a policy says of an audit."""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from overheard.core.errors import OutputError
from overheard.findings.names import shortened
from overheard.gate.check import Checked
from overheard.gate.verdict import LONGEST, Status

EXIT_CODES: dict[Status, int] = {"pass": 0, "fail": 1, "inconclusive": 2}
"""What the command ends with; of a whole policy nothing is excused."""

HEADS = ("of", "figure (95 %)", "limit", "why")

_STYLES: dict[Status, str] = {
    "pass": "green",
    "fail": "bold red",
    "inconclusive": "bold yellow",
    "excused": "dim",
}


def refuse_to_overwrite(read: Iterable[Path | None], written: Iterable[Path | None]) -> None:
    """See that no file is written twice, or over one that is read; None = there is none.

    Raises:
        OutputError: if so.

    """
    taken = {path.resolve() for path in read if path is not None}
    for path in (path for path in written if path is not None):
        if path.resolve() in taken:
            raise OutputError(f"{path}: is given twice: give each output a name of its own")
        taken.add(path.resolve())


def print_checked(checked: Checked, console: Console) -> None:
    """A table a rule, a line a verdict; then what comes of it all."""
    for (rule, score), verdicts in groupby(checked.verdicts, lambda one: (one.rule, one.score)):
        table = Table(
            Column("status", no_wrap=True),
            *(Column(head, overflow="fold") for head in HEADS),
            box=SIMPLE_HEAD,
            title=_text(f"{rule}: {score}"),
            title_justify="left",
            title_style="bold",
        )
        for verdict in verdicts:
            table.add_row(
                Text(verdict.status, style=_STYLES[verdict.status]),
                *map(_text, (verdict.what, verdict.told_figure, verdict.limit, verdict.why)),
            )
        console.print(table)
    for note in checked.notes:
        console.print(_text(note))
    console.print(Text(checked.told, style=_STYLES[checked.status]))


def _text(text: str) -> Text:
    return Text(shortened(text, LONGEST))
