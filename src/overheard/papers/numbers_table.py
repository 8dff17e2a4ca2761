"""The figures behind a drawing, as the table that stands beside it."""

from collections.abc import Sequence
from math import isfinite

from overheard.drawing.plates import Table
from overheard.findings.figures import NO_FIGURE, digits
from overheard.findings.names import shown
from overheard.papers.figure import Figure


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
