"""The report pages on attributes of users."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.pages import Pages
from overheard.drawing.people import (
    IN_CONTROL,
    INTERVALS_TERM,
    WHY_UNMEASURED,
    control_words,
    people_section,
    unmeasured_words,
)
from overheard.drawing.plates import Table
from overheard.drawing.score_tables import (
    ScoreColumn,
    ScoreTable,
    blind_guess,
    in_control,
    score_tables,
)
from overheard.drawing.sections import Section, Term
from overheard.drawing.sentences import Statement
from overheard.findings.finding import Audit
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.questions.attribute.measures import MEASURES

ACCURACY, BALANCED_ACCURACY = "accuracy", "balanced_accuracy"

TABLE = ScoreTable(
    "Attributes of users",
    (
        ScoreColumn(ACCURACY, MEASURES[ACCURACY]),
        ScoreColumn(ACCURACY, MEASURES[ACCURACY], "Guessing", blind_guess),
        ScoreColumn(ACCURACY, MEASURES[ACCURACY], IN_CONTROL, in_control),
        ScoreColumn(BALANCED_ACCURACY, MEASURES[BALANCED_ACCURACY]),
        ScoreColumn(BALANCED_ACCURACY, MEASURES[BALANCED_ACCURACY], "Guessing", blind_guess),
    ),
)


@final
@dataclass(frozen=True)
class AttributePages(Pages):
    """Report pages on attributes: accuracy compared with guessing and with the control."""

    name = "attribute"

    def reading(self, row: ScoreRow, whose: str) -> Statement:
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

    def sentences(self, exposure: ThreatResult) -> tuple[str, ...]:
        """Describe the control."""
        case = exposure.attack_results[0]
        return (control_words(case, self.question.measure(case.headline)),)

    def unmeasured(self, exposure: ThreatResult) -> str:
        """State that no known user took part."""
        return unmeasured_words(exposure)

    def why_unmeasured(self) -> str:
        """Return the same reason in a few words."""
        return WHY_UNMEASURED

    def sections(self, audit: Audit, every: Sequence[ArmResult]) -> tuple[Section, ...]:
        """Show the table of attributes."""
        return people_section(attribute_tables(every), ())

    def terms(self) -> tuple[Term, ...]:
        """Define intervals over users."""
        return (INTERVALS_TERM,)


def attribute_tables(every: Sequence[ArmResult]) -> tuple[Table, ...]:
    """Return one table per group of observers."""
    return score_tables(every, (TABLE,))
