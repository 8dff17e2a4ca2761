"""The question: whether, when and which way a client's data changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.core.seeds import Seed
from overheard.findings.finding import Finding
from overheard.findings.question import Question
from overheard.findings.row import Row
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.measures import MEASURES
from overheard.questions.shift.scorer.shift import ShiftScorer
from overheard.questions.shift.statistics.detection import detection_rows


@final
@dataclass(frozen=True, slots=True)
class ShiftQuestion(Question[Shift]):
    """Whether, when and which way a client's data changed."""

    name = "shift"
    source = ShiftScorer.source
    measures = MEASURES
    control = "exchange"
    takes_all_rounds = True

    @property
    def scorer(self) -> ShiftScorer:
        """What holds claims against the truth."""
        return ShiftScorer()

    def averages(self, finding: Finding) -> bool:
        """Those of controls too: each score says of which kind of runs it is."""
        return True

    def rows(self, findings: Sequence[Finding], seed: Seed) -> Sequence[Row]:
        """What runs with a shift tell beside their controls."""
        return detection_rows(findings, seed)
