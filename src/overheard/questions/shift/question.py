"""The question: whether, when and how a client's data changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from overheard.core.seeds import Seed
from overheard.core.true_facts.label_counts import DrawnShares, LabelCounts
from overheard.core.true_facts.shifts import Shifts
from overheard.findings.finding import ArmRun, Finding
from overheard.findings.planned_sizes import PlannedSizes
from overheard.findings.question import Question
from overheard.findings.re_paired_fits import RePairedFits
from overheard.findings.score_row import ScoreRow
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.measures import MEASURES
from overheard.questions.shift.scorer.shift import ShiftScorer
from overheard.questions.shift.statistics.detection import detection_rows
from overheard.questions.shift.statistics.re_paired_shifts import re_pair_shifts


@final
@dataclass(frozen=True, slots=True)
class ShiftQuestion(Question[Shift]):
    """Whether, when and how a client's data changed."""

    name = "shift"
    source = ShiftScorer.source
    measures = MEASURES
    reads = (LabelCounts, DrawnShares, Shifts)
    advice_without_pairings = (
        'simulate clients that shift (data.shifts), with data.exchanges = "natural"'
    )
    margins = MappingProxyType({"auc": 0.15})
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

    def re_paired_fits(
        self, findings: Sequence[Finding], runs: Sequence[ArmRun], seed: Seed
    ) -> RePairedFits:
        """Compare runs with a shift with their natural controls."""
        return re_pair_shifts(findings, seed)

    def count_planned_pairings(self, sizes: PlannedSizes) -> int:
        """Return the number of ways to choose a run of each seed, with a shift or a control."""
        return int((1 + sizes.controls) ** sizes.runs)
