"""The question: how the numbers to predict are distributed among a client's examples."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial
from types import MappingProxyType
from typing import final

import numpy as np
import torch

from overheard.core.parties import COHORT, client
from overheard.core.seeds import Seed
from overheard.core.truth import TrueFact
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition
from overheard.findings.controlled_findings import planned_by_attack
from overheard.findings.finding import ArmRun, Finding
from overheard.findings.planned_sizes import PlannedSizes
from overheard.findings.question import Question
from overheard.questions.target_distribution.claim import TargetDistribution
from overheard.questions.target_distribution.measures import MEASURES
from overheard.questions.target_distribution.scorer import TargetDistributionScorer
from overheard.questions.target_distribution.true_facts import ClientTargets, state_targets
from overheard.statistics.permutation_test import (
    RePairedFits,
    group_by_runs,
    no_test,
    number_values,
    re_pair_units,
)

ROUNDED = 6
"""Decimals to which true numbers are compared."""


@final
@dataclass(frozen=True, slots=True)
class TargetDistributionQuestion(Question[TargetDistribution]):
    """How the numbers to predict are distributed among a client's examples."""

    name = "target_distribution"
    source = TargetDistributionScorer.source
    measures = MEASURES
    reads = (ClientTargets,)
    margins = MappingProxyType({"target_mean_error": 0.10, "target_mean_error_of_cohort": 0.05})

    @property
    def scorer(self) -> TargetDistributionScorer:
        """The scorer of these claims."""
        return TargetDistributionScorer()

    def make_true_facts(
        self, dataset: Dataset, partition: DataPartition
    ) -> tuple[TrueFact, ...]:
        """Return the numbers of each client over all its examples, if there are no classes."""
        rows, pool = partition.rows, partition.pool.float_labels
        if pool is None or not rows:
            return ()
        stated = {}
        for number in range(len(rows[0])):
            held = torch.unique(torch.cat([by_client[number] for by_client in rows]))
            if len(held):
                stated[client(number)] = state_targets(client(number), pool[held])
        return (ClientTargets(stated),)

    def re_paired_fits(
        self, findings: Sequence[Finding], runs: Sequence[ArmRun], seed: Seed
    ) -> RePairedFits:
        """Compare claims with the numbers of permuted clients, or of cohorts of other runs."""
        return re_pair_targets(findings, seed)

    def count_planned_pairings(self, sizes: PlannedSizes) -> int:
        """Return the number of orders of clients, or of runs for the cohort."""
        return factorial(sizes.runs if sizes.about == "cohort" else sizes.targets)


def re_pair_targets(findings: Sequence[Finding], seed: Seed) -> RePairedFits:
    """Return how well the claims fit the numbers of their targets, and those of others.

    A fit is minus the sum of the distances of claimed from true numbers. Clients are permuted
    within a run, and cohorts between runs.
    """
    by_attack = planned_by_attack(findings)
    planned = [finding for members in by_attack.values() for finding in members]
    if not planned:
        return no_test("no claim was checked")
    is_cohort = planned[0].target == COHORT
    units = number_values((finding.cell.seed, finding.target) for finding in planned)
    truths = {
        units[finding.cell.seed, finding.target]: np.array(finding.true_numbers)
        for finding in planned
    }
    true = np.stack([truths[place] for place in range(len(units))])  # (units, numbers)
    runs = number_values(0 if is_cohort else number for number, _ in units)
    run_of = np.array([runs[0 if is_cohort else number] for number, _ in units])
    # Numbers of different units count alike.
    spread = np.maximum(true.std(0), np.abs(true).max(0) * 1e-9 + 1e-12)
    fits = []
    for members in by_attack.values():
        fit = (
            np.full((len(units), len(units)), np.nan)
            if not members
            else np.zeros((len(units), len(units)))
        )
        for finding in members:
            place = units[finding.cell.seed, finding.target]
            distance = np.abs(np.array(finding.claimed.numbers) - true) / spread
            fit[place] = -distance.sum(1)
        fits.append(fit)
    groups = group_by_runs(np.arange(len(units)), run_of, len(units))
    kinds = [row.round(ROUNDED).tobytes() for row in true]
    return re_pair_units(np.stack(fits), groups, kinds, seed)
