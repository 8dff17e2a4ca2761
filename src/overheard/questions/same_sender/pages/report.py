"""The report pages on which updates come from the same sender."""

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
from overheard.findings.finding import Audit
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.questions.same_sender.measures import MEASURES
from overheard.questions.same_sender.statistics.sender_pairs import collect_sender_pairs

AVERAGE_PRECISION = "average_precision"

TABLE = ScoreTable(
    PAIRS_TITLE,
    (
        ScoreColumn(AVERAGE_PRECISION, MEASURES[AVERAGE_PRECISION]),
        ScoreColumn(
            AVERAGE_PRECISION, MEASURES[AVERAGE_PRECISION], "Random order", blind_guess
        ),
        *PAIR_COLUMNS,
    ),
)


@final
@dataclass(frozen=True)
class SameSenderPages(Pages):
    """Report pages on linked updates, compared with guessing and with the control."""

    name = "same_sender"

    def reading(self, row: ScoreRow, whose: str) -> Statement:
        """State the average precision."""
        value = self.question.measure(row.score).format(row.value.mean)
        what = "which updates come from the same sender"
        return Statement(
            what,
            f"infers {what} with an average precision of {value}",
            f"at an average precision of {value}",
        )

    def intro(self) -> str:
        """Explain the reported score."""
        return "For updates from the same sender: the average precision, averaged over targets."

    def sentences(self, exposure: ThreatResult) -> tuple[str, ...]:
        """Describe pairs and the control."""
        case = exposure.attack_results[0]
        measure = self.question.measure(case.headline)
        return (*pair_words(case), control_words(case, measure))

    def unmeasured(self, exposure: ThreatResult) -> str:
        """State that no known user took part."""
        return unmeasured_words(exposure)

    def why_unmeasured(self) -> str:
        """Return the same reason in a few words."""
        return WHY_UNMEASURED

    def sections(self, audit: Audit, every: Sequence[ArmResult]) -> tuple[Section, ...]:
        """Show a table and curves."""
        return people_section(link_tables(every), link_figures(every))

    def terms(self) -> tuple[Term, ...]:
        """Define pairs, and intervals over users."""
        return (PAIRS_TERM, INTERVALS_TERM)


def link_tables(every: Sequence[ArmResult]) -> tuple[Table, ...]:
    """Return one table per group of observers."""
    return score_tables(every, (TABLE,))


def link_figures(every: Sequence[ArmResult]) -> tuple[Plate, ...]:
    """Return one figure per arm and group of observers."""
    return tuple(
        pairs_plate(exposure, curves)
        for arm in every
        for exposure in arm.threat_results
        if (curves := _curves(exposure))
    )


def _curves(exposure: ThreatResult) -> list[PairCurve]:
    """Return curves of the best attacks with both matching and other pairs."""
    curves = [
        PairCurve(
            case.label,
            collect_sender_pairs(found for found in case.findings if not found.cell.is_control),
        )
        for case in exposure.attack_results
    ]
    return [curve for curve in curves if curve.pairs][:MOST_ATTACKS]
