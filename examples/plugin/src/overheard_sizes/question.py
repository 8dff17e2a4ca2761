"""The question: whether a client holds more examples than most."""

from dataclasses import dataclass
from statistics import median
from typing import final

from overheard.core.knowledge import KnownFact
from overheard.core.seeds import Seed
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition
from overheard.findings.question import Question
from overheard_sizes.claim import LargerHalf
from overheard_sizes.known_facts import MedianSize
from overheard_sizes.scorer import LargerHalfScorer


@final
@dataclass(frozen=True, slots=True)
class LargerHalfQuestion(Question[LargerHalf]):
    """The question whether a client holds more examples than most."""

    name = "larger_half"
    source = LargerHalfScorer.source
    reads = (LabelCounts,)
    gives = (MedianSize,)

    @property
    def scorer(self) -> LargerHalfScorer:
        """The scorer that compares claims with the ground truth."""
        return LargerHalfScorer()

    def make_facts(
        self, dataset: Dataset, partition: DataPartition, seed: Seed
    ) -> tuple[KnownFact, ...]:
        """Return the median number of examples in the first round."""
        return (MedianSize(float(median(map(len, partition.rows[0])))),)
