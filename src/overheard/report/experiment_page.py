"""The page of a reproduced paper experiment, which works offline."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from overheard.drawing.plates import Plate, Table
from overheard.findings.names import make_printable
from overheard.report.template import template

Holds = Literal["yes", "no", "undecided"]
"""Whether a statement of the paper holds by the measured values."""


@final
@dataclass(frozen=True, slots=True)
class Reading:
    """A statement that a paper makes about its results, and whether it was reproduced.

    Args:
        key: its name among the statements of one experiment.
        says: the paper's sentence.
        holds: by the measured values and their intervals.
        because: these values, in words.

    """

    key: str
    says: str
    holds: Holds
    because: str


@final
@dataclass(frozen=True, slots=True)
class ExperimentPage:
    """The content of an experiment's page.

    Args:
        name: of the experiment.
        title: what it shows.
        differences: how the setting differs from the paper's.
        readings: the paper's statements.
        plates: the figures; names in them are already escaped by `findings.names.shown`.
        numbers: each value with the published one, one table per run.
        audits: sub-folders with a report each.
        quick: whether the experiment was run at a reduced size.

    """

    name: str
    title: str
    differences: str
    readings: Sequence[Reading]
    plates: Sequence[Plate]
    numbers: Sequence[Table]
    audits: Sequence[str]
    quick: bool

    def html(self) -> str:
        """Return the page; all names are escaped, control characters included."""
        return template("experiment_page.html.j2").render(
            name=make_printable(self.name),
            title=make_printable(self.title),
            differences=make_printable(self.differences),
            statements=_readings(self.readings) if self.readings else None,
            figures=self.plates,
            numbers=self.numbers,
            audits=[make_printable(name) for name in self.audits],
            quick=self.quick,
        )


def _readings(readings: Sequence[Reading]) -> Table:
    return Table(
        "The paper’s statements, compared with the measured values",
        ("The paper says", "Does it hold here?", "Evidence"),
        tuple(
            (make_printable(one.says), one.holds, make_printable(one.because))
            for one in readings
        ),
        3,
    )
