"""The page of an experiment, of a paper or of this project, which works offline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, final

from overheard.drawing.figures import ReportFigure, ReportTable
from overheard.findings.names import make_printable
from overheard.report.template import load_template

Holds = Literal["yes", "no", "undecided"]
"""Whether a statement holds by the measured values."""

State = Literal["yes", "no", "undecided", "cannot be run here"]
"""Whether a statement holds here, if it can be judged at all."""


@final
@dataclass(frozen=True, slots=True)
class PaperStatement:
    """What a paper, or this project before its runs, says of results, and whether it holds.

    Args:
        key: its name among the statements of one experiment.
        statement: the sentence.
        holds: by the measured values and their intervals.
        evidence: these values in words, or why there are none.
        condition: where the values must lie, such as "above 0.5"; "" = the evidence says it.

    """

    key: str
    statement: str
    holds: State
    evidence: str
    condition: str = ""


@final
@dataclass(frozen=True, slots=True)
class ExperimentPage:
    """The content of an experiment's page.

    Args:
        name: the name of the experiment.
        title: what it shows.
        differences: how the setting differs from the paper's.
        statements: what the paper, or this project before the runs, says of results.
        figures: the figures; names in them are already escaped by
            `findings.names.make_printable`.
        numbers: each value with the published one, one table per run.
        audits: sub-folders with a report each.
        quick: whether the experiment was run at a reduced size or with fewer seeds.
        facts: how it was run, such as its commit.

    """

    name: str
    title: str
    differences: str
    statements: Sequence[PaperStatement]
    figures: Sequence[ReportFigure]
    numbers: Sequence[ReportTable]
    audits: Sequence[str]
    quick: bool
    facts: Mapping[str, str] = field(default_factory=dict)

    def html(self) -> str:
        """Return the page; all names are escaped, control characters included."""
        return load_template("experiment_page.html.j2", "overheard_studies.pages").render(
            name=make_printable(self.name),
            title=make_printable(self.title),
            differences=make_printable(self.differences),
            statements=_statements_table(self.statements) if self.statements else None,
            figures=self.figures,
            numbers=self.numbers,
            audits=[make_printable(name) for name in self.audits],
            quick=self.quick,
            facts={name: make_printable(fact) for name, fact in self.facts.items()},
        )


def _statements_table(readings: Sequence[PaperStatement]) -> ReportTable:
    return ReportTable(
        "Statements made before the runs, compared with the measured values",
        ("Statement", "Does it hold here?", "Evidence", "It must lie"),
        tuple(
            (
                make_printable(one.statement),
                one.holds,
                make_printable(one.evidence),
                one.condition,
            )
            for one in readings
        ),
        4,
    )
