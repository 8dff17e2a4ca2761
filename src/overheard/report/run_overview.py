"""An overview of a stored run: its facts and who can read what, as text or notebook tables."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from overheard.findings.html import html_table
from overheard.findings.metadata import MetadataItem
from overheard.findings.names import make_printable

NO_METADATA = "The messages contain nothing but weights."


@dataclass(frozen=True, slots=True)
class ObserverRow:
    """How many messages of each kind an observer can read.

    Args:
        observers: name of the observer or group of observers.
        counts: one text per column, such as "3" or "2-5".

    """

    observers: str
    counts: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class RunOverview:
    """An overview of a stored run; `print` and notebooks show all of it.

    Args:
        facts: pairs of name and text, as stated by the recording; a fact without a name
            continues the one before it.
        columns: the kinds of messages in the run.
        rows: one per observer, or per group of observers that can read equally many messages.
        total: how many messages of each kind there are.
        readers: sentences on who reads which individual updates.
        metadata: the metadata that is sent with the weights.

    """

    facts: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    rows: tuple[ObserverRow, ...]
    total: ObserverRow
    readers: tuple[str, ...]
    metadata: tuple[MetadataItem, ...]

    def __str__(self) -> str:
        """Return all of it as plain text."""
        lines = (
            *_pairs(self.facts),
            "",
            *_aligned([("observer", *self.columns), *self._cells]),
            "",
            *self.readers,
            "",
            *(_pairs(self._metadata_rows) or [NO_METADATA]),
        )
        return "\n".join(make_printable(line).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        headers, readers = ("observer", *self.columns), " ".join(self.readers)
        return (
            html_table("The run", (), self.facts)
            + html_table("Who can read what", headers, self._cells, readers)
            + html_table(
                "Metadata", (), self._metadata_rows, "" if self._metadata_rows else NO_METADATA
            )
        )

    @property
    def _cells(self) -> list[tuple[str, ...]]:
        return [(row.observers, *row.counts) for row in (*self.rows, self.total)]

    @property
    def _metadata_rows(self) -> list[tuple[str, str]]:
        return [(one.kind, one.text) for one in self.metadata]


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{name:>11} {text}" for name, text in pairs]


def _aligned(table: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a table, with names aligned left and numbers aligned right."""
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    for name, *numbers in table:
        cells = [cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True)]
        yield "  ".join((name.ljust(widths[0]), *cells))
