"""The question: which records a client trained on."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from overheard.core.known_facts.candidate_records import CandidateRecords
from overheard.core.seeds import Seed
from overheard.core.true_facts.record_owners import (
    BoundDigest,
    OfferedCanaries,
    RecordOwners,
    RecordsDigest,
)
from overheard.findings.finding import ArmRun, Finding
from overheard.findings.planned_sizes import PlannedSizes
from overheard.findings.question import Question
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.measures import MEASURES
from overheard.questions.membership.scorer import MembershipScorer
from overheard.questions.membership.statistics.re_paired_owners import re_pair_owners
from overheard.questions.membership.statistics.record_rates import estimate_record_rates
from overheard.statistics.estimate import Estimate
from overheard.statistics.permutation_test import MOST_ENUMERATED, RePairedFits


@final
@dataclass(frozen=True, slots=True)
class MembershipQuestion(Question[Membership]):
    """Which records a client trained on."""

    name = "membership"
    source = MembershipScorer.source
    measures = MEASURES
    reads = (RecordOwners, RecordsDigest, OfferedCanaries, BoundDigest)
    gives = (CandidateRecords,)
    advice_without_pairings = "take canaries"
    margins = MappingProxyType({"membership_auc": 0.05, "tpr_at_1_percent": 0.02})

    @property
    def scorer(self) -> MembershipScorer:
        """Return the scorer of these claims."""
        return MembershipScorer()

    def interval_over_records(
        self, score: str, value: float, findings: Sequence[Finding]
    ) -> Estimate | None:
        """Return the score interval of an AUC, or the exact interval of a rate."""
        rates = estimate_record_rates(findings)
        if score in ("membership_auc", "membership_auc_within_labels"):
            return rates.auc(value)
        if score == "membership_accuracy":
            return rates.accuracy
        return rates.true_positive_rates.get(score)

    def re_paired_fits(
        self, findings: Sequence[Finding], runs: Sequence[ArmRun], seed: Seed
    ) -> RePairedFits:
        """Compare claims with permuted owners of the candidate records."""
        return re_pair_owners(findings, runs, seed)

    def count_planned_pairings(self, sizes: PlannedSizes) -> int:
        """Return the number of exchanges of a member with a non-member, at least."""
        return MOST_ENUMERATED if sizes.exchanges_records else 1
