"""The question: whether a client holds more examples than most."""

from dataclasses import dataclass
from typing import final

from overheard.core.true_facts.label_counts import LabelCounts
from overheard.findings.question import Question
from overheard_sizes.claim import LargerHalf
from overheard_sizes.scorer import LargerHalfScorer


@final
@dataclass(frozen=True, slots=True)
class LargerHalfQuestion(Question[LargerHalf]):
    """The question whether a client holds more examples than most."""

    name = "larger_half"
    source = LargerHalfScorer.source
    reads = (LabelCounts,)

    @property
    def scorer(self) -> LargerHalfScorer:
        """The scorer that compares claims with the ground truth."""
        return LargerHalfScorer()
