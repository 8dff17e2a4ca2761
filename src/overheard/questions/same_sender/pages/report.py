"""What a report tells of which updates are of one sender."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.pages import Pages
from overheard.drawing.pair_plates import MOST_ATTACKS, PairCurve, pairs_plate
from overheard.drawing.people import (
    INTERVALS_TERM,
    PAIR_COLUMNS,
    PAIRS_TERM,
    PAIRS_TITLE,
    WHY_UNMEASURED,
    control_words,
    pair_words,
    people_section,
    unmeasured_words,
)
from overheard.drawing.plates import Plate, Table
from overheard.drawing.score_tables import ScoreColumn, ScoreTable, blind_guess, score_tables
from overheard.drawing.sections import Section, Term
from overheard.drawing.sentences import Statement
from overheard.findings.exposures import Arm, Exposure
from overheard.findings.finding import Audit
from overheard.findings.row import Row
from overheard.questions.same_sender.measures import MEASURES
from overheard.questions.same_sender.statistics.pairs import sender_matches

PRECISION = "average_precision"

TABLE = ScoreTable(
    PAIRS_TITLE,
    (
        ScoreColumn(PRECISION, MEASURES[PRECISION]),
        ScoreColumn(PRECISION, MEASURES[PRECISION], "Random order", blind_guess),
        *PAIR_COLUMNS,
    ),
)


@final
@dataclass(frozen=True)
class SameSenderPages(Pages):
    """How well updates of one sender are linked, beside chance and beside the control."""

    name = "same_sender"

    def reading(self, row: Row, whose: str) -> Statement:
        """How precisely others of the same sender are found."""
        value = self.question.measure(row.score).tell(row.value.mean)
        return Statement(
            "which targets are of one sender",
            f"tells which targets are of one sender, with an average precision of {value}",
            f"at an average precision of {value}",
        )

    def intro(self) -> str:
        """How precisely others of the same sender are found."""
        return "For which targets are of one sender: the average precision, target by target."

    def sentences(self, exposure: Exposure) -> tuple[str, ...]:
        """Pairs and the control."""
        case = exposure.cases[0]
        told = self.question.measure(case.headline)
        return (*pair_words(case), control_words(case, told))

    def unmeasured(self, exposure: Exposure) -> str:
        """Nobody is known."""
        return unmeasured_words(exposure)

    def why_unmeasured(self) -> str:
        """Nobody is known."""
        return WHY_UNMEASURED

    def sections(self, audit: Audit, every: Sequence[Arm]) -> tuple[Section, ...]:
        """A table and curves."""
        return people_section(link_tables(every), link_plates(every))

    def terms(self) -> tuple[Term, ...]:
        """Pairs, and intervals over people."""
        return (PAIRS_TERM, INTERVALS_TERM)


def link_tables(every: Sequence[Arm]) -> tuple[Table, ...]:
    """A table for each group of observers."""
    return score_tables(every, (TABLE,))


def link_plates(every: Sequence[Arm]) -> tuple[Plate, ...]:
    """A figure for each group of observers, arm by arm."""
    return tuple(
        pairs_plate(exposure, curves)
        for arm in every
        for exposure in arm.exposures
        if (curves := _curves(exposure))
    )


def _curves(exposure: Exposure) -> list[PairCurve]:
    """The best attacks of which there are pairs of both kinds."""
    curves = [
        PairCurve(
            case.label,
            sender_matches(one for one in case.findings if not one.cell.is_control),
        )
        for case in exposure.cases
    ]
    return [curve for curve in curves if curve.pairs][:MOST_ATTACKS]
