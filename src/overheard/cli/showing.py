"""Prints the overview of a stored run in the width of the terminal."""

from collections.abc import Iterable

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from overheard.cli.terminal import escaped_text
from overheard.report.run_overview import NO_METADATA, RunOverview

SHORT_HEADERS = {
    "broadcasts": "broad-\ncasts",
    "aggregates": "aggre-\ngates",
    "distilled sets": "distilled\nsets",
    "evaluations": "evalu-\nations",
    "missing updates": "missing\nupdates",
    "example counts": "example\ncounts",
}
"""Column headers on two lines, so that all columns fit."""


def print_overview(overview: RunOverview, console: Console) -> None:
    """Print the facts of a run, what each party can read, and the metadata."""
    console.print(_pairs(overview.facts))
    console.print()
    console.print(_table(overview))
    for line in overview.readers:
        console.print(escaped_text(line))
    console.print()
    if not overview.metadata:
        console.print(NO_METADATA)
    console.print(_pairs((one.kind, one.text) for one in overview.metadata))


def _pairs(pairs: Iterable[tuple[str, str]]) -> Table:
    """Return a table with names on the left and wrapped texts on the right."""
    table = Table.grid(
        Column(width=11, justify="right"), Column(overflow="fold"), padding=(0, 1)
    )
    for name, value in pairs:
        table.add_row(Text(name, style="dim"), escaped_text(value))
    return table


def _table(overview: RunOverview) -> Table:
    heads = (SHORT_HEADERS.get(column, column) for column in overview.columns)
    table = Table(
        Column("observer", overflow="fold"),
        *(Column(head, no_wrap=True, justify="right") for head in heads),
        box=SIMPLE,
        padding=(0, 0, 0, 1),
        pad_edge=False,
    )
    for row in overview.rows:
        table.add_row(escaped_text(row.observers), *row.counts)
    table.add_section()
    table.add_row(overview.total.observers, *overview.total.counts)
    return table
