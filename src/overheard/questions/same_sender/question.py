"""The question: which updates are of one sender."""

from dataclasses import dataclass
from typing import final

from overheard.findings.question import Question
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.same_sender.scorer import SameSenderScorer


@final
@dataclass(frozen=True, slots=True)
class SameSenderQuestion(Question[SameSender]):
    """Which updates are of one sender."""

    name = "same_sender"
    source = SameSenderScorer.source

    @property
    def scorer(self) -> SameSenderScorer:
        """What holds claims against the truth."""
        return SameSenderScorer()
