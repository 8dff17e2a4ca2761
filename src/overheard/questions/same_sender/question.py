"""The question: which updates come from the same sender."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import factorial
from types import MappingProxyType
from typing import final

from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.seeds import Seed
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.findings.controlled_findings import control_mean, group_with_controls, pair_rows
from overheard.findings.finding import ArmRun, Finding
from overheard.findings.planned_sizes import PlannedSizes
from overheard.findings.question import Question
from overheard.findings.score_row import ScoreRow
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.same_sender.measures import MEASURES
from overheard.questions.same_sender.scorer import SameSenderScorer
from overheard.questions.same_sender.statistics.re_paired_senders import re_pair_senders
from overheard.questions.same_sender.statistics.sender_pairs import collect_sender_pairs
from overheard.statistics.permutation_test import RePairedFits

ENOUGH_CLIENTS = 8
"""Clients whose permutations are more than can be enumerated; more make no difference."""


@final
@dataclass(frozen=True, slots=True)
class SameSenderQuestion(Question[SameSender]):
    """Which updates come from the same sender."""

    name = "same_sender"
    source = SameSenderScorer.source
    measures = MEASURES
    reads = (UsersOfClients,)
    gives = (KnownUsers,)
    advice_without_pairings = "take more rounds"
    margins = MappingProxyType({"average_precision": 0.05})
    control = "permutation"
    is_about_users = True
    needs_all_rounds = True

    @property
    def scorer(self) -> SameSenderScorer:
        """The scorer of this question."""
        return SameSenderScorer()

    def references(
        self, score: str, planned: Sequence[Finding], control: Sequence[Finding]
    ) -> Mapping[str, float]:
        """Return the mean score in the control runs."""
        return control_mean(score, control)

    def summary_rows(self, findings: Sequence[Finding], seed: Seed) -> Sequence[ScoreRow]:
        """Return rows on how well pairs from one sender are distinguished from other pairs."""
        return tuple(
            row
            for comparison in group_with_controls(findings)
            for row in pair_rows(
                comparison,
                collect_sender_pairs(comparison.planned),
                collect_sender_pairs(comparison.control),
                comparison.interval_seed(seed),
            )
        )

    def re_paired_fits(
        self, findings: Sequence[Finding], runs: Sequence[ArmRun], seed: Seed
    ) -> RePairedFits:
        """Compare claims with senders that are permuted within rounds."""
        return re_pair_senders(findings, seed)

    def count_planned_pairings(self, sizes: PlannedSizes) -> int:
        """Return the number of permutations of senders within rounds, at least.

        Permutations that are the same in all rounds change only names. Users may be the same in
        all runs, and are then permuted alike.
        """
        of_a_round = factorial(min(sizes.senders, ENOUGH_CLIENTS))
        return int(of_a_round ** max(0, sizes.rounds - 1))
