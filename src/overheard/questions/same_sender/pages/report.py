"""The report pages on which updates come from the same sender."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.drawing.figures import ReportFigure, ReportTable
from overheard.drawing.pair_figures import MAX_ATTACKS, NamedRocCurve, pair_figure
from overheard.drawing.question_pages import QuestionPages
from overheard.drawing.score_tables import ScoreColumn, ScoreTable, guess_value, score_tables
from overheard.drawing.sections import Section, Term
from overheard.drawing.sentences import Statement
from overheard.drawing.users import (
    INTERVALS_TERM,
    PAIR_COLUMNS,
    PAIRS_TERM,
    PAIRS_TITLE,
    UNMEASURED_REASON,
    control_sentence,
    pair_sentences,
    unmeasured_user_sentence,
    user_section,
)
from overheard.findings.audit import Audit
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
            AVERAGE_PRECISION, MEASURES[AVERAGE_PRECISION], "Random order", guess_value
        ),
        *PAIR_COLUMNS,
    ),
)


@final
@dataclass(frozen=True)
class SameSenderPages(QuestionPages):
    """Report pages on linked updates, compared with guessing and with the control."""

    name = "same_sender"
    plain_question = "Which updates come from the same sender"

    def headline_statement(self, row: ScoreRow, whose: str) -> Statement:
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

    def detail_sentences(self, threat_result: ThreatResult) -> tuple[str, ...]:
        """Describe pairs and the control."""
        attack_result = threat_result.attack_results[0]
        measure = self.question.measure(attack_result.headline)
        return (*pair_sentences(attack_result), control_sentence(attack_result, measure))

    def unmeasured_sentence(self, threat_result: ThreatResult) -> str:
        """State that no known user took part."""
        return unmeasured_user_sentence(threat_result)

    def unmeasured_reason(self) -> str:
        """Return the same reason in a few words."""
        return UNMEASURED_REASON

    def sections(self, audit: Audit, arm_results: Sequence[ArmResult]) -> tuple[Section, ...]:
        """Show a table and curves."""
        return user_section(link_tables(arm_results), link_figures(arm_results))

    def terms(self) -> tuple[Term, ...]:
        """Define pairs, and intervals over users."""
        return (PAIRS_TERM, INTERVALS_TERM)


def link_tables(arm_results: Sequence[ArmResult]) -> tuple[ReportTable, ...]:
    """Return one table per group of observers."""
    return score_tables(arm_results, (TABLE,))


def link_figures(arm_results: Sequence[ArmResult]) -> tuple[ReportFigure, ...]:
    """Return one figure per arm and group of observers."""
    return tuple(
        pair_figure(threat_result, curves)
        for arm in arm_results
        for threat_result in arm.threat_results
        if (curves := _curves(threat_result))
    )


def _curves(threat_result: ThreatResult) -> list[NamedRocCurve]:
    """Return curves of the best attacks with both matching and other pairs."""
    curves = [
        NamedRocCurve(
            attack_result.label,
            collect_sender_pairs(
                found for found in attack_result.findings if not found.cell.is_control
            ),
        )
        for attack_result in threat_result.attack_results
    ]
    return [curve for curve in curves if curve.pairs][:MAX_ATTACKS]
