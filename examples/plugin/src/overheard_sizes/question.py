"""The question: whether a client holds more examples than most."""

from dataclasses import dataclass
from statistics import median
from typing import final

from overheard.core.knowledge import KnownFact
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.core.truth import TrueFact
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition
from overheard.findings.question import Question
from overheard_sizes.claim import LargerHalf
from overheard_sizes.known_facts import MedianSize
from overheard_sizes.scorer import LargerHalfScorer
from overheard_sizes.true_facts import ClientSizes


@final
@dataclass(frozen=True, slots=True)
class LargerHalfQuestion(Question[LargerHalf]):
    """The question whether a client holds more examples than most."""

    name = "larger_half"
    source = LargerHalfScorer.source
    reads = (ClientSizes,)
    gives = (MedianSize,)

    def make_true_facts(
        self, dataset: Dataset, partition: DataPartition
    ) -> tuple[TrueFact, ...]:
        """Return the sizes of all clients."""
        users = partition.run_users
        shadows = 0 if users is None else len(users.shadow_rows)
        sizes = {
            (number, client(place)): len(held)
            for number, rows in enumerate(partition.rows)
            for place, held in enumerate(rows[: len(rows) - shadows])
        }
        return (ClientSizes(sizes),)

    @property
    def scorer(self) -> LargerHalfScorer:
        """The scorer that compares claims with the ground truth."""
        return LargerHalfScorer()

    def make_known_facts(
        self, dataset: Dataset, partition: DataPartition, seed: Seed
    ) -> tuple[KnownFact, ...]:
        """Return the median number of examples in the first round."""
        return (MedianSize(float(median(map(len, partition.rows[0])))),)
