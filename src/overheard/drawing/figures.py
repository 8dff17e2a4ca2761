"""Tables and figures of a report; a figure has drawings and a table of their values."""

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table of formatted cells; the first column names the row.

    Args:
        caption: what the table shows.
        headers: the column headers.
        rows: the rows, with one cell per header.
        text_columns: how many leading columns contain text; the others contain numbers.

    """

    caption: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text_columns: int


@dataclass(frozen=True, slots=True)
class Panel:
    """One drawing of a figure, with a heading; "" for none."""

    heading: str
    drawing: Markup


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """A figure: its drawings and their values.

    Args:
        title: the title of the figure.
        note: how to read it, and what is left out.
        legend: shared by the panels; None if each has its own.
        panels: the drawings.
        table: their values.
        is_folded: whether the table is collapsed; in print it is expanded.

    """

    title: str
    note: str
    legend: Markup | None
    panels: tuple[Panel, ...]
    table: ReportTable
    is_folded: bool
