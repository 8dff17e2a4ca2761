"""The values in a figure, as the table next to it."""

from collections.abc import Sequence
from math import isfinite

from overheard.drawing.figures import ReportTable
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER, format_number
from overheard_studies.reproduced_value import ReproducedValue


def tabulate_values(caption: str, values: Sequence[ReproducedValue]) -> ReportTable:
    """Return a table of the values in a figure."""
    return ReportTable(
        caption,
        ("Value", "Setting", "Mean", "95 % interval"),
        tuple(
            (
                make_printable(one.name),
                make_printable(one.setting.partition("; ")[2]),
                format_number(one.value),
                f"{format_number(one.low)} to {format_number(one.high)}"
                if one.low is not None and isfinite(one.low)
                else NO_NUMBER,
            )
            for one in values
        ),
        2,
    )
