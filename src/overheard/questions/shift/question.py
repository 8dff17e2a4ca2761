"""The question: whether, when and how a client's data changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.core.seeds import Seed
from overheard.findings.finding import Finding
from overheard.findings.question import Question
from overheard.findings.score_row import ScoreRow
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.measures import MEASURES
from overheard.questions.shift.scorer.shift import ShiftScorer
from overheard.questions.shift.statistics.detection import detection_rows


@final
@dataclass(frozen=True, slots=True)
class ShiftQuestion(Question[Shift]):
    """Whether, when and how a client's data changed."""

    name = "shift"
    source = ShiftScorer.source
    measures = MEASURES
    control = "exchange"
    needs_all_rounds = True

    @property
    def scorer(self) -> ShiftScorer:
        """Return the scorer of these claims."""
        return ShiftScorer()

    def is_averaged(self, finding: Finding) -> bool:
        """Return True also for natural controls: each score applies to one kind of run only.

        Alarms in exact controls are rows of their own, see `summary_rows`.
        """
        return finding.cell.control != "exact"

    def summary_rows(self, findings: Sequence[Finding], seed: Seed) -> Sequence[ScoreRow]:
        """Return rows that compare runs with a shift with their controls."""
        return detection_rows(findings, seed)
