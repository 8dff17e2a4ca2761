"""What a stored run holds and who can read what of it, as text and as tables of a notebook."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from overheard.findings.html import html_table
from overheard.findings.names import shown
from overheard.report.in_clear import InClear

NOTHING_IN_CLEAR = "Nothing but weights travels."


@dataclass(frozen=True, slots=True)
class ObserverRow:
    """How many messages of each kind some observers can read.

    Args:
        observers: who.
        counts: a text a column, such as "3" or "2-5".

    """

    observers: str
    counts: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class RunOverview:
    """What a stored run holds; `print` shows all of it, and so does a notebook.

    Args:
        facts: what was run, by name, as whoever made the recording tells it; a fact without a
            name goes on with the one before.
        columns: the kinds of messages that there are.
        rows: one an observer, or a group of observers who can read as much.
        total: how many messages of each kind there are.
        readers: sentences on who reads whose updates one by one.
        in_clear: what travels beside the weights.

    """

    facts: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    rows: tuple[ObserverRow, ...]
    total: ObserverRow
    readers: tuple[str, ...]
    in_clear: tuple[InClear, ...]

    def __str__(self) -> str:
        """Return all of it as plain text."""
        lines = (
            *_pairs(self.facts),
            "",
            *_aligned([("observer", *self.columns), *self._cells]),
            "",
            *self.readers,
            "",
            *(_pairs(self._said) or [NOTHING_IN_CLEAR]),
        )
        return "\n".join(shown(line).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        heads, who = ("observer", *self.columns), " ".join(self.readers)
        return (
            html_table("The run", (), self.facts)
            + html_table("Who can read what", heads, self._cells, who)
            + html_table("In clear", (), self._said, "" if self._said else NOTHING_IN_CLEAR)
        )

    @property
    def _cells(self) -> list[tuple[str, ...]]:
        return [(row.observers, *row.counts) for row in (*self.rows, self.total)]

    @property
    def _said(self) -> list[tuple[str, str]]:
        return [(one.what, one.says) for one in self.in_clear]


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{name:>11} {says}" for name, says in pairs]


def _aligned(table: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """The lines of a table: names to the left, numbers to the right of their column."""
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    for name, *numbers in table:
        cells = [cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True)]
        yield "  ".join((name.ljust(widths[0]), *cells))
