"""Prints what a stored run holds, as wide as the terminal is."""

from collections.abc import Iterable

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from overheard.cli.terminal import plain
from overheard.report.run_overview import NOTHING_IN_CLEAR, RunOverview

NARROW = {
    "broadcasts": "broad-\ncasts",
    "aggregates": "aggre-\ngates",
    "distilled sets": "distilled\nsets",
    "evaluations": "evalu-\nations",
    "no answers": "no\nanswers",
    "sizes in clear": "sizes\nin clear",
}
"""Heads of columns on two lines, so that all of them fit."""


def print_overview(overview: RunOverview, console: Console) -> None:
    """Print what was run, what every party can read, and what travels in clear."""
    console.print(_pairs(overview.facts))
    console.print()
    console.print(_table(overview))
    for line in overview.readers:
        console.print(plain(line))
    console.print()
    if not overview.in_clear:
        console.print(NOTHING_IN_CLEAR)
    console.print(_pairs((one.what, one.says) for one in overview.in_clear))


def _pairs(pairs: Iterable[tuple[str, str]]) -> Table:
    """Names on the left, what they say on the right, folded where it is long."""
    table = Table.grid(
        Column(width=11, justify="right"), Column(overflow="fold"), padding=(0, 1)
    )
    for name, value in pairs:
        table.add_row(Text(name, style="dim"), plain(value))
    return table


def _table(overview: RunOverview) -> Table:
    heads = (NARROW.get(column, column) for column in overview.columns)
    table = Table(
        Column("observer", overflow="fold"),
        *(Column(head, no_wrap=True, justify="right") for head in heads),
        box=SIMPLE,
        padding=(0, 0, 0, 1),
        pad_edge=False,
    )
    for row in overview.rows:
        table.add_row(plain(row.observers), *row.counts)
    table.add_section()
    table.add_row(overview.total.observers, *overview.total.counts)
    return table
