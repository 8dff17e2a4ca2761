"""The question: whether, when and which way a client's data changed."""

from dataclasses import dataclass
from typing import final

from overheard.findings.question import Question
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.scorer.shift import ShiftScorer


@final
@dataclass(frozen=True, slots=True)
class ShiftQuestion(Question[Shift]):
    """Whether, when and which way a client's data changed."""

    name = "shift"
    source = ShiftScorer.source

    @property
    def scorer(self) -> ShiftScorer:
        """What holds claims against the truth."""
        return ShiftScorer()
