"""The question: which known user sent an update."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import factorial
from types import MappingProxyType
from typing import final

import numpy as np
from jaxtyping import Float, Int

from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.seeds import Seed
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.findings.controlled_findings import planned_by_attack
from overheard.findings.finding import ArmRun, Finding
from overheard.findings.planned_sizes import PlannedSizes
from overheard.findings.question import Question
from overheard.findings.score_row import ScoreRow
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.measures import MEASURES
from overheard.questions.identity.scorer import IdentityScorer
from overheard.questions.identity.statistics.identity_rows import (
    identity_references,
    identity_rows,
)
from overheard.statistics.permutation_test import (
    RePairedFits,
    group_by_runs,
    no_test,
    number_values,
    re_pair_units,
    sum_by_user,
)


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
        """Compare claims with permuted users."""
        return re_pair_identities(findings, seed)

    def count_planned_pairings(self, sizes: PlannedSizes) -> int:
        """Return the number of permutations of known users."""
        return factorial(max(0, sizes.targets - sizes.unknown_users))


def re_pair_identities(findings: Sequence[Finding], seed: Seed) -> RePairedFits:
    """Return how well the claims fit the known users behind the targets, and other users.

    Users are permuted with all their targets, and alike in all runs. Targets of users that the
    attacker does not know are left out.
    """
    by_attack = {
        attack: [one for one in members if one.true_user in one.claimed.candidates]
        for attack, members in planned_by_attack(findings).items()
    }
    planned = [finding for members in by_attack.values() for finding in members]
    if not planned:
        return no_test("no target is a known user")
    users = number_values(str(finding.true_user) for finding in planned)
    seeds = number_values(finding.cell.seed for finding in planned)
    numbers = np.array([users[str(finding.true_user)] for finding in planned])
    runs = np.array([seeds[finding.cell.seed] for finding in planned])
    fits = [_fits(members, users) for members in by_attack.values()]
    groups = group_by_runs(numbers, runs, len(users))
    return re_pair_units(np.stack(fits), groups, range(len(users)), seed)


def _fits(
    members: Sequence[Finding], users: Mapping[str, int]
) -> Float[np.ndarray, "users users"]:
    """Return the fits of one attack, summed over runs; runs may have other known users."""
    by_run: dict[tuple[int, tuple[str, ...]], list[Finding]] = defaultdict(list)
    for finding in members:
        by_run[finding.cell.seed, finding.claimed.candidates].append(finding)
    fits = np.zeros((len(users), len(users))) if members else np.full((len(users),) * 2, np.nan)
    for (_, candidates), in_run in by_run.items():
        place_of = {user: place for place, user in enumerate(candidates)}
        fits += identity_fits(
            np.array([finding.claimed.numbers for finding in in_run]),
            np.array([users[str(finding.true_user)] for finding in in_run]),
            np.zeros(len(in_run), dtype=np.int64),
            np.array([place_of.get(user, -1) for user in users]),
        )
    return fits


def identity_fits(
    scores: Float[np.ndarray, "targets users"],
    true_users: Int[np.ndarray, " targets"],
    runs: Int[np.ndarray, " targets"],
    users: Int[np.ndarray, " users"],
) -> Float[np.ndarray, "users users"]:
    """Return how well the claims about each user fit the identity of every user.

    It is the sum over the user's targets of -ln(rank), less the mean of the run. The rank is
    that of the other user's identity among the known users; ties share their mean rank.

    Args:
        scores: the evidence for each known user, larger = more.
        true_users: the user behind each target.
        runs: the run of each target.
        users: the place of each user among the known users; -1 = not one of them.

    """
    from scipy.stats import rankdata  # only here: importing it takes half a second

    ranks = rankdata(-scores, axis=1)
    of_users = np.where(users < 0, np.nan, -np.log(ranks)[:, users])
    return sum_by_user(of_users, true_users, runs, len(users))
