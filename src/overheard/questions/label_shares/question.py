"""The question: the share of each label among a client's examples."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import factorial, prod
from types import MappingProxyType
from typing import final

import torch

from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.truth import GroundTruth
from overheard.findings.finding import ArmRun, Finding
from overheard.findings.planned_sizes import PlannedSizes
from overheard.findings.question import Question
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.measures import MEASURES
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer
from overheard.questions.label_shares.statistics.re_paired_shares import (
    re_pair_shares,
    redrawn_share_fits,
)
from overheard.statistics.permutation_test import RePairedFits


@final
@dataclass(frozen=True, slots=True)
class LabelSharesQuestion(Question[LabelShares]):
    """The share of each label among a client's examples."""

    name = "label_shares"
    source = LabelSharesScorer.source
    measures = MEASURES
    reads = (LabelCounts,)
    needs_redrawn_partitions = True
    needs_classes = True
    margins = MappingProxyType({"l1": 0.10, "l1_of_cohort": 0.05})

    @property
    def scorer(self) -> LabelSharesScorer:
        """The scorer of this question."""
        return LabelSharesScorer()

    def redrawn_fits(
        self, claim: LabelShares, truth: GroundTruth, target: Party, rounds: Collection[int]
    ) -> tuple[float, ...]:
        """Return how well the claimed shares fit the true ones and those drawn anew.

        Shares read from sums have none: the sums tell the mean shares of all clients, so they
        fit the true partition even if they tell no client from another. Clients are permuted.
        """
        if claim.is_from_sums:
            return ()
        label_counts = truth.facts.need(LabelCounts)
        redrawn = label_counts.redrawn_counts_of(target, rounds)
        if redrawn is None:
            return ()
        counts = torch.cat([label_counts.counts_of(target, rounds)[None], redrawn]).double()
        shares = counts / counts.sum(1, keepdim=True).clamp(min=1)  # (partitions, classes)
        claimed = claim.shares.double().numpy(force=True)[None, None]
        fits = redrawn_share_fits(claimed, shares[:, None].numpy(force=True))
        return tuple(fits[:, 0].tolist())

    def re_paired_fits(
        self, findings: Sequence[Finding], runs: Sequence[ArmRun], seed: Seed
    ) -> RePairedFits:
        """Compare claims with partitions drawn anew, or with permuted clients."""
        return re_pair_shares(findings, seed)

    def count_planned_pairings(self, sizes: PlannedSizes) -> int:
        """Return the number of partitions drawn anew, or of orders of clients or runs."""
        if sizes.redrawn_partitions:
            return 1 + sizes.redrawn_partitions
        if sizes.about == "cohort":
            return 1 if sizes.are_cohorts_equal else factorial(sizes.runs)
        # To exchange clients with equal shares changes nothing. Those of the largest groups may
        # be no targets.
        equal = list(sizes.equal_clients)
        for _ in range(sum(equal) - sizes.targets):
            equal[equal.index(max(equal))] -= 1
        return factorial(sizes.targets) // prod(map(factorial, equal))
