"""The report pages on attributes of users."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.figures import ReportTable
from overheard.drawing.question_pages import QuestionPages
from overheard.drawing.score_tables import (
    ScoreColumn,
    ScoreTable,
    control_value,
    guess_value,
    score_tables,
)
from overheard.drawing.sections import Section, Term
from overheard.drawing.sentences import Statement
from overheard.drawing.users import (
    CONTROL_HEADER,
    INTERVALS_TERM,
    UNMEASURED_REASON,
    control_sentence,
    unmeasured_user_sentence,
    user_section,
)
from overheard.findings.audit import Audit
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.questions.attribute.measures import MEASURES

ACCURACY, BALANCED_ACCURACY = "accuracy", "balanced_accuracy"

TABLE = ScoreTable(
    "Attributes of users",
    (
        ScoreColumn(ACCURACY, MEASURES[ACCURACY]),
        ScoreColumn(ACCURACY, MEASURES[ACCURACY], "Guessing", guess_value),
        ScoreColumn(ACCURACY, MEASURES[ACCURACY], CONTROL_HEADER, control_value),
        ScoreColumn(BALANCED_ACCURACY, MEASURES[BALANCED_ACCURACY]),
        ScoreColumn(BALANCED_ACCURACY, MEASURES[BALANCED_ACCURACY], "Guessing", guess_value),
    ),
)


@final
@dataclass(frozen=True)
class AttributePages(QuestionPages):
    """Report pages on attributes: accuracy compared with guessing and with the control."""

    name = "attribute"
    plain_question = "What kind of user is behind an update, such as their sex or age"

    def headline_statement(self, row: ScoreRow, whose: str) -> Statement:
        """State how often the most probable value is correct."""
        value = self.question.measure(row.score).format(row.value.mean)
        return Statement(
            "the attribute of the user behind a target",
            f"infers the attribute of the user behind a target correctly in {value} of cases",
            f"correct in {value} of cases",
        )

    def intro(self) -> str:
        """Explain the reported score."""
        return "For attributes of users: how often the most probable value is correct."

    def detail_sentences(self, threat_result: ThreatResult) -> tuple[str, ...]:
        """Describe the control."""
        attack_result = threat_result.attack_results[0]
        return (control_sentence(attack_result, self.question.measure(attack_result.headline)),)

    def unmeasured_sentence(self, threat_result: ThreatResult) -> str:
        """State that no known user took part."""
        return unmeasured_user_sentence(threat_result)

    def unmeasured_reason(self) -> str:
        """Return the same reason in a few words."""
        return UNMEASURED_REASON

    def sections(self, audit: Audit, arm_results: Sequence[ArmResult]) -> tuple[Section, ...]:
        """Show the table of attributes."""
        return user_section(attribute_tables(arm_results), ())

    def terms(self) -> tuple[Term, ...]:
        """Define intervals over users."""
        return (INTERVALS_TERM,)


def attribute_tables(arm_results: Sequence[ArmResult]) -> tuple[ReportTable, ...]:
    """Return one table per group of observers."""
    return score_tables(arm_results, (TABLE,))
