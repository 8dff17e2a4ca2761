"""The values in a figure, as the table next to it."""

from collections.abc import Sequence
from math import isfinite

from overheard.drawing.plates import Table
from overheard.findings.figures import NO_FIGURE, digits
from overheard.findings.names import shown
from overheard.papers.figure import Figure


def numbers_table(caption: str, values: Sequence[Figure]) -> Table:
    """Return a table of the values in a figure."""
    return Table(
        caption,
        ("Value", "Setting", "Mean", "95 % interval"),
        tuple(
            (
                shown(one.name),
                shown(one.setting.partition("; ")[2]),
                digits(one.ours),
                f"{digits(one.low)} to {digits(one.high)}"
                if one.low is not None and isfinite(one.low)
                else NO_FIGURE,
            )
            for one in values
        ),
        2,
    )
