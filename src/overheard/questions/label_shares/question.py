"""The question: the share of each label among a client's examples."""

from dataclasses import dataclass
from typing import final

from overheard.findings.question import Question
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.measures import MEASURES
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer


@final
@dataclass(frozen=True, slots=True)
class LabelSharesQuestion(Question[LabelShares]):
    """The share of each label among a client's examples."""

    name = "label_shares"
    source = LabelSharesScorer.source
    measures = MEASURES

    @property
    def scorer(self) -> LabelSharesScorer:
        """The scorer of this question."""
        return LabelSharesScorer()
