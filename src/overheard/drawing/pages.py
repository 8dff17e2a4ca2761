"""The contract of a question's pages: all that a report tells of it alone."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

from overheard.drawing.claims import choice_words, claims_tables
from overheard.drawing.score_tables import (
    ScoreColumn,
    ScoreTable,
    blind_guess,
    score_tables,
    with_interval,
)
from overheard.drawing.sections import Section, SectionBlock, Term
from overheard.drawing.sentences import Statement, best_target_words
from overheard.findings.exposures import Arm, Case, Exposure
from overheard.findings.finding import Audit, Finding
from overheard.findings.names import all_others, shown, together
from overheard.findings.question import Question
from overheard.findings.row import Row


@dataclass(frozen=True)
class Pages(ABC):
    """The words, tables and figures on one question in a report.

    Concrete pages are a final frozen dataclass without further fields, in the folder of their
    question. What is handed to them is about that question alone. Of what they return, names
    are already as `findings.names.shown` has them.

    Args:
        question: that they tell of.

    """

    # Any: pages tell of findings, whatever the claims were.
    question: Question[Any]

    name: ClassVar[str]
    """Of the question."""

    @abstractmethod
    def reading(self, row: Row, whose: str) -> Statement:
        """How the first sentence says what is read, by a row of `told_row`.

        Args:
            row: the figure that it gives.
            whose: data are read, such as "each client's".

        """

    def intro(self) -> str:
        """A sentence on the figure of `told_row`, at the head of the report; "" for none."""
        return ""

    def told_row(self, case: Case) -> Row:
        """The figure that the sentences and the table at a glance give."""
        return case.row

    def frontier_row(self, case: Case) -> Row:
        """The figure of what is read that stands against what defenses cost."""
        return case.row

    def sentences(self, exposure: Exposure) -> tuple[str, ...]:
        """What is told of an exposure between the first sentence and that on the attack."""
        row = self.told_row(exposure.cases[0])
        return best_target_words(exposure, row, self.question.measure(row.score))

    def unmeasured(self, exposure: Exposure) -> str:
        """The sentence where attacks ran and there is no figure by which they are told."""
        whom = all_others(exposure.observers) if exposure.about == "cohort" else "each client"
        what, figure = _spoken(self.question.name), self._headline_title
        return (
            f"What {together(exposure.observers)} can learn about {whom} ({what}) was not "
            f"measured: attacks ran, and none of their runs gives the figure by which it is "
            f"told ({figure})."
        )

    def why_unmeasured(self) -> str:
        """The same reason in a few words, for the arm of a defense."""
        return f"no run gives the figure by which it is told ({self._headline_title})"

    def claim_in_words(self, finding: Finding) -> str:
        """One claim that was not checked."""
        return choice_words(finding)

    def claims(self, audit: Audit, every: Sequence[Arm]) -> tuple[SectionBlock, ...]:
        """What attacks claim where there is no truth to hold it against."""
        tables = claims_tables(every, self.claim_in_words)
        return (SectionBlock(tables=tables),) if tables else ()

    def sections(self, audit: Audit, every: Sequence[Arm]) -> tuple[Section, ...]:
        """What the report shows of this question alone, beside what it shows of every one."""
        return ()

    def terms(self) -> tuple[Term, ...]:
        """What a reader of these figures looks up."""
        return ()

    @property
    def _headline_title(self) -> str:
        return self.question.measure(self.question.scorer.headline).title


@final
@dataclass(frozen=True)
class PlainPages(Pages):
    """The pages of a question that has none of its own: a table of its scores."""

    name = "plain"

    def reading(self, row: Row, whose: str) -> Statement:
        """What is asked, by the title of the figure."""
        told = self.question.measure(row.score)
        figure = f"{told.title} {told.tell(row.value.mean)}"
        what = f"{whose} {_spoken(row.question)}"
        return Statement(what, f"reads {what} with {figure}", f"at {figure}")

    def intro(self) -> str:
        """The title of the figure."""
        return f"For {_spoken(self.question.name)}: {_lowered(self._headline_title)}."

    def sections(self, audit: Audit, every: Sequence[Arm]) -> tuple[Section, ...]:
        """Every score that the question lists, beside the guess."""
        what = _spoken(self.question.name)
        columns = [
            column
            for score, told in self.question.measures.items()
            for column in (
                ScoreColumn(score, told, cell=with_interval),
                ScoreColumn(score, told, "Guessing", blind_guess),
            )
        ]
        title = f"{what[:1].upper()}{what[1:]}"
        tables = score_tables(every, [ScoreTable(title, tuple(columns))])
        if not tables:
            return ()
        anchor = re.sub(r"\W+", "-", f"question-{self.question.name}")
        return (Section(anchor, title, title, (SectionBlock(tables=tables),)),)

    def terms(self) -> tuple[Term, ...]:
        """The figure by which the question is told."""
        headline = self.question.scorer.headline
        rows = f"Score {shown(headline)} of the question “{_spoken(self.question.name)}”."
        source = f" Source: {shown(self.question.source)}." if self.question.source else ""
        return (Term(self._headline_title, f"{rows}{source}"),)


def _spoken(question: str) -> str:
    return shown(question).replace("_", " ")


def _lowered(title: str) -> str:
    return f"{title[:1].lower()}{title[1:]}"
