"""The contract of a question's pages: the parts of a report that belong to it alone."""

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
from overheard.findings.finding import Audit, Finding
from overheard.findings.names import make_printable, name_observers, name_other_clients
from overheard.findings.question import Question
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ArmResult, AttackResult, ThreatResult


@dataclass(frozen=True)
class Pages(ABC):
    """The sentences, tables and figures on one question in a report.

    A subclass is a final frozen dataclass without further fields, in the folder of its
    question. It is given the results of that question only. Names in what it returns are
    already escaped by `findings.names.shown`.

    Args:
        question: the question.

    """

    # Any: pages describe findings, whatever the type of the claims.
    question: Question[Any]

    name: ClassVar[str]
    """Of the question."""

    @abstractmethod
    def reading(self, row: ScoreRow, whose: str) -> Statement:
        """Return the phrases of the first sentence, for a row of `told_row`.

        Args:
            row: the result to state.
            whose: owner of the inferred data, such as "each client's".

        """

    def intro(self) -> str:
        """Return a sentence that explains the score of `told_row`; "" for none."""
        return ""

    def told_row(self, case: AttackResult) -> ScoreRow:
        """Return the result that the summary states."""
        return case.headline_row

    def frontier_row(self, case: AttackResult) -> ScoreRow:
        """Return the result that is plotted against the cost of defenses."""
        return case.headline_row

    def sentences(self, exposure: ThreatResult) -> tuple[str, ...]:
        """Return the sentences between the first one and the one on the attack."""
        row = self.told_row(exposure.attack_results[0])
        return best_target_words(exposure, row, self.question.measure(row.score))

    def unmeasured(self, exposure: ThreatResult) -> str:
        """Return the sentence for attacks that ran but have no headline score."""
        whom = (
            name_other_clients(exposure.observers)
            if exposure.target_kind == "cohort"
            else "each client"
        )
        what, score = _spoken(self.question.name), self._headline_title
        return (
            f"What {name_observers(exposure.observers)} can learn about {whom} ({what}) was not "
            f"measured: attacks ran, but no run has the headline score ({score})."
        )

    def why_unmeasured(self) -> str:
        """Return the same reason as a clause, for the comparison of defenses."""
        return f"no run has the headline score ({self._headline_title})"

    def claim_in_words(self, finding: Finding) -> str:
        """Describe one unchecked claim."""
        return choice_words(finding)

    def claims(self, audit: Audit, every: Sequence[ArmResult]) -> tuple[SectionBlock, ...]:
        """Return the claims that were not checked against the ground truth."""
        tables = claims_tables(every, self.claim_in_words)
        return (SectionBlock(tables=tables),) if tables else ()

    def sections(self, audit: Audit, every: Sequence[ArmResult]) -> tuple[Section, ...]:
        """Return the report sections that belong to this question alone."""
        return ()

    def terms(self) -> tuple[Term, ...]:
        """Return the glossary terms of this question."""
        return ()

    @property
    def _headline_title(self) -> str:
        return self.question.measure(self.question.scorer.headline).title


@final
@dataclass(frozen=True)
class PlainPages(Pages):
    """The pages of a question without pages of its own: a table of its scores."""

    name = "plain"

    def reading(self, row: ScoreRow, whose: str) -> Statement:
        """Return phrases with the title and value of the score."""
        measure = self.question.measure(row.score)
        result = f"{measure.title} {measure.format(row.value.mean)}"
        what = f"{whose} {_spoken(row.question)}"
        return Statement(what, f"infers {what} with {result}", f"at {result}")

    def intro(self) -> str:
        """Return the title of the headline score."""
        return f"For {_spoken(self.question.name)}: {_lowered(self._headline_title)}."

    def sections(self, audit: Audit, every: Sequence[ArmResult]) -> tuple[Section, ...]:
        """Return a table of all scores of the question, with uninformed guesses."""
        what = _spoken(self.question.name)
        columns = [
            column
            for score, measure in self.question.measures.items()
            for column in (
                ScoreColumn(score, measure, cell=with_interval),
                ScoreColumn(score, measure, "Guessing", blind_guess),
            )
        ]
        title = f"{what[:1].upper()}{what[1:]}"
        tables = score_tables(every, [ScoreTable(title, tuple(columns))])
        if not tables:
            return ()
        anchor = re.sub(r"\W+", "-", f"question-{self.question.name}")
        return (Section(anchor, title, title, (SectionBlock(tables=tables),)),)

    def terms(self) -> tuple[Term, ...]:
        """Return the headline score."""
        headline = self.question.scorer.headline
        rows = (
            f"Score {make_printable(headline)} of the question “{_spoken(self.question.name)}”."
        )
        source = (
            f" Source: {make_printable(self.question.source)}." if self.question.source else ""
        )
        return (Term(self._headline_title, f"{rows}{source}"),)


def _spoken(question: str) -> str:
    return make_printable(question).replace("_", " ")


def _lowered(title: str) -> str:
    return f"{title[:1].lower()}{title[1:]}"
