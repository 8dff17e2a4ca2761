"""The question: which known user sent an update."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import factorial
from types import MappingProxyType
from typing import final

from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.seeds import Seed
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.findings.finding import ArmRun, Finding
from overheard.findings.planned_sizes import PlannedSizes
from overheard.findings.question import Question
from overheard.findings.re_paired_fits import RePairedFits
from overheard.findings.score_row import ScoreRow
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.measures import MEASURES
from overheard.questions.identity.scorer import IdentityScorer
from overheard.questions.identity.statistics.identity_rows import (
    identity_references,
    identity_rows,
)
from overheard.questions.identity.statistics.re_paired_identities import re_pair_identities


@final
@dataclass(frozen=True, slots=True)
class IdentityQuestion(Question[Identity]):
    """Which known user sent an update."""

    name = "identity"
    source = IdentityScorer.source
    measures = MEASURES
    reads = (UsersOfClients,)
    gives = (KnownUsers,)
    margins = MappingProxyType({"top1": 0.05})
    control = "permutation"
    is_about_users = True
    needs_all_rounds = True

    @property
    def scorer(self) -> IdentityScorer:
        """Return the scorer of these claims."""
        return IdentityScorer()

    def references(
        self, score: str, planned: Sequence[Finding], control: Sequence[Finding]
    ) -> Mapping[str, float]:
        """Return the control's mean, and the base-rate score of `unseen`."""
        return identity_references(score, planned, control)

    def summary_rows(self, findings: Sequence[Finding], seed: Seed) -> Sequence[ScoreRow]:
        """Return rows that rate the re-identification of all targets of a run together."""
        return identity_rows(findings, seed)

    def re_paired_fits(
        self, findings: Sequence[Finding], runs: Sequence[ArmRun], seed: Seed
    ) -> RePairedFits:
        """Compare claims with permuted people."""
        return re_pair_identities(findings, seed)

    def count_planned_pairings(self, sizes: PlannedSizes) -> int:
        """Return the number of permutations of known users."""
        return factorial(max(0, sizes.targets - sizes.unknown_users))
