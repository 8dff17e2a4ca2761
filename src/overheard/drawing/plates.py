"""A figure of a report: its drawings, and the table of the same numbers."""

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as a reader sees them; the first column names the line.

    Args:
        caption: what the table holds.
        heads: of the columns.
        lines: one cell a head.
        words: how many leading columns hold words, the others hold figures.

    """

    caption: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    words: int


@dataclass(frozen=True, slots=True)
class Panel:
    """One drawing of a figure, with its own heading; "" where it needs none."""

    heading: str
    drawing: Markup


@dataclass(frozen=True, slots=True)
class Plate:
    """A figure: its drawings and their numbers.

    Args:
        title: of the figure.
        note: what to see, and what was left out.
        legend: shared by the panels; None where each explains itself.
        panels: the drawings.
        table: their numbers.
        is_folded: a long table that a reader opens; on paper it is open.

    """

    title: str
    note: str
    legend: Markup | None
    panels: tuple[Panel, ...]
    table: Table
    is_folded: bool
