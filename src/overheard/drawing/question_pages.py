"""The base class of a question's pages: the parts of a report that belong to it alone."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

from overheard.drawing.claim_tables import candidate_words, unchecked_claim_tables
from overheard.drawing.score_tables import (
    ScoreColumn,
    ScoreTable,
    guess_value,
    score_tables,
    value_with_interval,
)
from overheard.drawing.sections import Section, SectionBlock, Term
from overheard.drawing.sentences import Statement, best_target_sentences
from overheard.findings.audit import Audit
from overheard.findings.finding import Finding
from overheard.findings.names import make_printable, name_observers, name_other_clients
from overheard.findings.question import Question
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ArmResult, ThreatResult


@dataclass(frozen=True)
class QuestionPages(ABC):
    """The sentences, tables and figures on one question in a report.

    A subclass is a final frozen dataclass without further fields, in the folder of its
    question. It is given the results of that question only. Names in what it returns are
    already escaped by `findings.names.make_printable`.

    Args:
        question: the question.

    """

    # Any: pages describe findings, whatever the type of the claims.
    question: Question[Any]

    name: ClassVar[str]
    """The name of the question; `plain` for the default pages."""

    plain_question: ClassVar[str] = ""
    """The question in words for readers who know no machine learning; "" = its name."""

    @abstractmethod
    def headline_statement(self, row: ScoreRow, whose: str) -> Statement:
        """Return the phrases of a threat's first sentence, about a row of the headline score.

        Args:
            row: the result to state.
            whose: owner of the inferred data, such as "each client's".

        """

    def intro(self) -> str:
        """Return a sentence that explains the headline score; "" for none."""
        return ""

    def guess_statement(self, value: str) -> str:
        """Return what a guess achieves, given its headline score with unit."""
        return value

    def unchecked_example(self, threat_result: ThreatResult, classes: Sequence[str]) -> str:
        """Return a sentence on the claim without ground truth that is farthest from a guess.

        Args:
            threat_result: the result, with such claims.
            classes: names of the classes, not yet escaped.

        """
        return ""

    def detail_sentences(self, threat_result: ThreatResult) -> tuple[str, ...]:
        """Return the sentences after a threat's first sentence, before those on its attacks."""
        row = threat_result.attack_results[0].headline_row
        return best_target_sentences(threat_result, row, self.question.measure(row.score))

    def unmeasured_sentence(self, threat_result: ThreatResult) -> str:
        """Return the sentence for attacks that ran but have no headline score."""
        whom = (
            name_other_clients(threat_result.observers)
            if threat_result.target_kind == "cohort"
            else "each client"
        )
        what, score = _question_words(self.question.name), self._headline_title
        return (
            f"What {name_observers(threat_result.observers)} can learn about {whom} ({what}) "
            f"was not measured: attacks ran, but no run has the headline score ({score})."
        )

    def unmeasured_reason(self) -> str:
        """Return the reason in `unmeasured_sentence` as a clause, to compare defenses."""
        return f"no run has the headline score ({self._headline_title})"

    def describe_claim(self, finding: Finding) -> str:
        """Describe one unchecked claim."""
        return candidate_words(finding)

    def claim_blocks(
        self, audit: Audit, arm_results: Sequence[ArmResult]
    ) -> tuple[SectionBlock, ...]:
        """Return the claims that were not checked against the ground truth."""
        tables = unchecked_claim_tables(arm_results, self.describe_claim)
        return (SectionBlock(tables=tables),) if tables else ()

    def sections(self, audit: Audit, arm_results: Sequence[ArmResult]) -> tuple[Section, ...]:
        """Return the report sections that belong to this question alone."""
        return ()

    def terms(self) -> tuple[Term, ...]:
        """Return the glossary terms of this question."""
        return ()

    @property
    def _headline_title(self) -> str:
        return self.question.measure(self.question.headline).title


@final
@dataclass(frozen=True)
class DefaultQuestionPages(QuestionPages):
    """The pages of a question without pages of its own: a table of its scores."""

    name = "plain"

    def headline_statement(self, row: ScoreRow, whose: str) -> Statement:
        """Return phrases with the title and value of the score."""
        measure = self.question.measure(row.score)
        result = f"{measure.title} {measure.format(row.value.mean)}"
        what = f"{whose} {_question_words(row.question)}"
        return Statement(what, f"infers {what} with {result}", f"at {result}")

    def intro(self) -> str:
        """Return the title of the headline score."""
        return (
            f"For {_question_words(self.question.name)}: {_lower_first(self._headline_title)}."
        )

    def sections(self, audit: Audit, arm_results: Sequence[ArmResult]) -> tuple[Section, ...]:
        """Return a table of all scores of the question, with uninformed guesses."""
        what = _question_words(self.question.name)
        columns = [
            column
            for score, measure in self.question.measures.items()
            for column in (
                ScoreColumn(score, measure, cell=value_with_interval),
                ScoreColumn(score, measure, "Guessing", guess_value),
            )
        ]
        title = f"{what[:1].upper()}{what[1:]}"
        tables = score_tables(arm_results, [ScoreTable(title, tuple(columns))])
        if not tables:
            return ()
        anchor = re.sub(r"\W+", "-", f"question-{self.question.name}")
        return (Section(anchor, title, title, (SectionBlock(tables=tables),)),)

    def terms(self) -> tuple[Term, ...]:
        """Return the headline score."""
        headline = self.question.headline
        meaning = (
            f"Score {make_printable(headline)} of the question "
            f"“{_question_words(self.question.name)}”."
        )
        source = (
            f" Source: {make_printable(self.question.source)}." if self.question.source else ""
        )
        return (Term(self._headline_title, f"{meaning}{source}"),)


def _question_words(question: str) -> str:
    return make_printable(question).replace("_", " ")


def _lower_first(title: str) -> str:
    return f"{title[:1].lower()}{title[1:]}"
