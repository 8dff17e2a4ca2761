"""What a report tells of what the person behind a sender is like."""

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
from overheard.findings.exposures import Arm, Exposure
from overheard.findings.finding import Audit
from overheard.findings.row import Row
from overheard.questions.attribute.measures import MEASURES

RIGHT, BALANCED = "accuracy", "balanced_accuracy"

TABLE = ScoreTable(
    "What a person is like",
    (
        ScoreColumn(RIGHT, MEASURES[RIGHT]),
        ScoreColumn(RIGHT, MEASURES[RIGHT], "Guessing", blind_guess),
        ScoreColumn(RIGHT, MEASURES[RIGHT], IN_CONTROL, in_control),
        ScoreColumn(BALANCED, MEASURES[BALANCED]),
        ScoreColumn(BALANCED, MEASURES[BALANCED], "Guessing", blind_guess),
    ),
)


@final
@dataclass(frozen=True)
class AttributePages(Pages):
    """How often values of an attribute are told right, beside chance and the control."""

    name = "attribute"

    def reading(self, row: Row, whose: str) -> Statement:
        """How often the value named first is the right one."""
        value = self.question.measure(row.score).tell(row.value.mean)
        return Statement(
            "what the person behind a target is like",
            f"tells what the person behind a target is like, right in {value}",
            f"right in {value}",
        )

    def intro(self) -> str:
        """How often the value named first is the right one."""
        return (
            "For what the person behind a target is like: how often the value named first is "
            "the right one."
        )

    def sentences(self, exposure: Exposure) -> tuple[str, ...]:
        """The control."""
        case = exposure.cases[0]
        return (control_words(case, self.question.measure(case.headline)),)

    def unmeasured(self, exposure: Exposure) -> str:
        """Nobody is known."""
        return unmeasured_words(exposure)

    def why_unmeasured(self) -> str:
        """Nobody is known."""
        return WHY_UNMEASURED

    def sections(self, audit: Audit, every: Sequence[Arm]) -> tuple[Section, ...]:
        """A table."""
        return people_section(attribute_tables(every), ())

    def terms(self) -> tuple[Term, ...]:
        """Intervals over people."""
        return (INTERVALS_TERM,)


def attribute_tables(every: Sequence[Arm]) -> tuple[Table, ...]:
    """A table for each group of observers."""
    return score_tables(every, (TABLE,))
