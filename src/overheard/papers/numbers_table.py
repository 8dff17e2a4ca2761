"""The figures behind a drawing, as the table that stands beside it."""

from collections.abc import Sequence
from math import isfinite

from overheard.papers.figure import Figure
from overheard.report.figures import NO_FIGURE, digits
from overheard.report.names import shown
from overheard.report.plates import Table


def numbers_table(caption: str, figures: Sequence[Figure]) -> Table:
    """The figures behind a drawing."""
    return Table(
        caption,
        ("Figure", "Of", "Mean", "95 % interval"),
        tuple(
            (
                shown(one.name),
                shown(one.setting.partition("; ")[2]),
                digits(one.ours),
                f"{digits(one.low)} to {digits(one.high)}"
                if one.low is not None and isfinite(one.low)
                else NO_FIGURE,
            )
            for one in figures
        ),
        2,
    )
