"""Lays out what came of a paper's experiment as one page that works offline."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from overheard.drawing.plates import Plate, Table
from overheard.findings.names import shown
from overheard.report.template import template

Holds = Literal["yes", "no", "undecided"]
"""Whether a sentence holds by what was measured."""


@final
@dataclass(frozen=True, slots=True)
class Reading:
    """What a paper reads off its figure in words, and whether our numbers say so too.

    Args:
        key: its name among the readings of one experiment.
        says: the paper's sentence.
        holds: by our numbers and their intervals.
        because: these numbers, in words.

    """

    key: str
    says: str
    holds: Holds
    because: str


@final
@dataclass(frozen=True, slots=True)
class ExperimentPage:
    """All that the page of an experiment tells.

    Args:
        name: of the experiment.
        title: what it shows.
        differences: how our setting departs from the paper's.
        readings: what the paper says in words.
        plates: the drawings; names in them are already as `findings.names.shown` has them.
        numbers: every figure beside the published one, a table for each run.
        audits: sub-folders that hold a report each.
        quick: whether it was run at a reduced size.

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
        """The page; every name is escaped, and every control character spelled out before."""
        return template("experiment_page.html.j2").render(
            name=shown(self.name),
            title=shown(self.title),
            differences=shown(self.differences),
            readings=_readings(self.readings) if self.readings else None,
            plates=self.plates,
            numbers=self.numbers,
            audits=[shown(name) for name in self.audits],
            quick=self.quick,
        )


def _readings(readings: Sequence[Reading]) -> Table:
    return Table(
        "The paper’s sentences, held against our numbers",
        ("The paper says", "Does it hold here?", "By"),
        tuple((shown(one.says), one.holds, shown(one.because)) for one in readings),
        3,
    )
