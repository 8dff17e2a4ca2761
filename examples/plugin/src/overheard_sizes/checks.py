"""Contract tests on sizes: clients of unequal sizes, whose updates tell it or do not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import final

from overheard.core.defense import DefenseContext
from overheard.core.messages import Update
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.truth import GroundTruth
from overheard.testing.planted_labels import simulate_one_round
from overheard.testing.trial import PlantedRun, QuestionChecks
from overheard_sizes.claim import LargerHalf
from overheard_sizes.defense import EvenNorm
from overheard_sizes.known_facts import MedianSize
from overheard_sizes.scorer import LargerHalfScorer
from overheard_sizes.true_facts import ClientSizes

SIZES = ((60, 4, 4, 4), (4, 20, 4, 4), (4, 4, 80, 4), (4, 4, 4, 12))
"""Label counts of clients with 72, 32, 92 and 24 examples: two are larger than the rest."""


@final
@dataclass(frozen=True, slots=True)
class LargerHalfChecks(QuestionChecks):
    """Clients of unequal sizes, without a defense and behind one."""

    name = "larger_half"
    scorer = LargerHalfScorer()
    example = LargerHalf((client(0),), (0.5,))

    def leaky_runs(self) -> Sequence[PlantedRun]:
        """Return a run whose updates are the longer, the more examples a client has."""
        run = simulate_one_round(SIZES)
        known = run.knowledge.facts.having(MedianSize(median(map(sum, SIZES))))
        knowledge = replace(run.knowledge, facts=known)
        return (replace(run, knowledge=knowledge, truth=self.add_truth(run.truth)),)

    def leak_free_runs(self) -> Sequence[PlantedRun]:
        """Return the same run with updates of equal length."""
        (run,), defense = self.leaky_runs(), EvenNorm()
        messages = [
            replace(
                one,
                body=defense.on_update(
                    one.body, DefenseContext(one.round, one.sender, Seed(0))
                ),
            )
            if isinstance(one.body, Update)
            else one
            for one in run.transcript.messages
        ]
        return (replace(run, transcript=Transcript(tuple(messages))),)

    def add_truth(self, truth: GroundTruth) -> GroundTruth:
        """Return the truth with the sizes of its clients."""
        counts = truth.facts.need(LabelCounts).counts
        return truth.having(ClientSizes({key: int(one.sum()) for key, one in counts.items()}))
