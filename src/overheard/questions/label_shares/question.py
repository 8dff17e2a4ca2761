"""The question: which share of each client's examples bears each label."""

from dataclasses import dataclass
from typing import final

from overheard.findings.question import Question
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.measures import MEASURES
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer


@final
@dataclass(frozen=True, slots=True)
class LabelSharesQuestion(Question[LabelShares]):
    """Which share of each client's examples bears each label."""

    name = "label_shares"
    source = LabelSharesScorer.source
    measures = MEASURES

    @property
    def scorer(self) -> LabelSharesScorer:
        """What holds claims against the truth."""
        return LabelSharesScorer()
