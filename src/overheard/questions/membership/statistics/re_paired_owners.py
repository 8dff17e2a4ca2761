"""Claims about membership, compared with owners that are permuted among records."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from math import prod

import numpy as np
from jaxtyping import Bool, Float, Int

from overheard.core.seeds import Seed
from overheard.findings.controlled_findings import planned_by_attack
from overheard.findings.finding import ArmRun, Finding, RecordExchange
from overheard.findings.threat_verdict import TargetKind
from overheard.statistics.permutation_test import (
    RePairedFits,
    count_arrangements,
    no_test,
    re_pair_runs,
    smallest_p_value,
)

NON_MEMBER = -1
"""The owner of a record that no client holds."""


NOT_COUNTED = -2
"""The owner of a record that is neither a member of a target nor a non-member."""

TAKE_CANARIES = (
    "records of one user, or cut from one original, belong together, so nothing says which of "
    "them might as well have been members: take canaries"
)


DRAW_CANARIES = (
    "So an attack may separate them without any memory of a record: draw canaries before the "
    "next run (`overheard canaries`), which are members by chance alone"
)


ASK_COHORT = (
    "So an attack may tell whose data a record is like, without any memory of it. Members of "
    'any client are like the outsiders: ask about them together (about = "cohort"), or draw '
    "canaries before the next run (`overheard canaries`)"
)


def re_pair_owners(
    findings: Sequence[Finding], runs: Sequence[ArmRun], seed: Seed
) -> RePairedFits:
    """Return how well the claims fit the owners of records, and permuted owners.

    The owners of canaries are permuted among all of them: each was drawn at random, with the
    same odds. Other owners are permuted among the records of a label, since members may have
    other labels than non-members. What claims gain by labels alone is in `common_gains`.
    """
    by_attack = {
        # Without members or without non-members there is nothing to compare.
        attack: [finding for finding in members if finding.scores]
        for attack, members in planned_by_attack(findings).items()
    }
    by_run: dict[int, list[Finding]] = defaultdict(list)
    for finding in (finding for members in by_attack.values() for finding in members):
        by_run[finding.cell.seed].append(finding)
    if not by_run:
        return no_test("no claim was checked")
    records = {run.seed: run for run in runs if not run.is_control}
    tables = [
        _Records(members, list(by_attack), records[number])
        for number, members in by_run.items()
        if number in records
    ]
    kinds = {one.target_kind for members in by_run.values() for one in members}
    about: TargetKind = "clients" if "clients" in kinds else "cohort"
    for run in records.values():
        difference = run.record_difference
        if difference is not None and not difference.is_small(about):
            asked = difference.is_small("cohort") and about == "clients"
            advice = ASK_COHORT if asked else DRAW_CANARIES
            return no_test(f"{difference.sentence(about)}. {advice}")
    if len(tables) < len(by_run) or any(table.exchange == "none" for table in tables):
        return no_test(TAKE_CANARIES)
    sums = np.sum(
        [
            table.fits(pairings)
            for table, pairings in zip(
                tables, re_pair_runs([table.groups for table in tables], seed), strict=True
            )
        ],
        axis=0,
    )
    counts = np.array([max(1, len(members)) for members in by_attack.values()])
    gains = np.sum([table.label_gains() for table in tables], axis=0)
    has_claims = np.array([bool(members) for members in by_attack.values()])
    fits = np.where(has_claims, sums / counts, np.nan)
    return RePairedFits(
        fits,
        smallest_p_value(prod(table.arrangements for table in tables), len(fits)),
        common_gains=tuple(np.nan_to_num(gains / counts).tolist()),
    )


class _Records:
    """The candidate records of one run that might as well have had other owners."""

    def __init__(
        self, findings: Sequence[Finding], attacks: Sequence[str], run: ArmRun
    ) -> None:
        knows_labels = len(run.record_labels) == len(findings[0].true_numbers)
        self.exchange: RecordExchange = (
            run.record_exchange if knows_labels or run.record_exchange == "all" else "none"
        )
        targets = list(dict.fromkeys(finding.target for finding in findings))
        owners = np.full(len(findings[0].true_numbers), NOT_COUNTED)
        for finding in findings:
            true = np.array(finding.true_numbers)
            owners[true < 0] = NON_MEMBER
            owners[true > 0] = targets.index(finding.target)
        self._is_counted = owners != NOT_COUNTED
        self.owners = owners[self._is_counted]
        self.groups: Int[np.ndarray, " records"] = (
            np.array(run.record_labels)[self._is_counted]
            if self.exchange == "same label"
            else np.zeros(len(self.owners), dtype=np.int64)
        )
        self._ranks = record_ranks(
            np.array([finding.claimed.numbers for finding in findings])[:, self._is_counted]
        )
        self._targets = np.array([targets.index(finding.target) for finding in findings])
        self._attacks = np.array([attacks.index(finding.cell.attack) for finding in findings])
        self._attack_count = len(attacks)

    @property
    def arrangements(self) -> int:
        """The number of different ways to assign the owners."""
        kinds: list[Hashable] = self.owners.tolist()
        return count_arrangements(self.groups.tolist(), kinds)

    def fits(
        self, pairings: Int[np.ndarray, "pairings records"]
    ) -> Float[np.ndarray, "pairings attacks"]:
        """Return the sums over each attack's claims."""
        of_claims = membership_fits(self._ranks, self._targets, self.owners[pairings])
        sums: Float[np.ndarray, "pairings attacks"] = of_claims @ self._is_of_attack
        return sums

    def label_gains(self) -> Float[np.ndarray, " attacks"]:
        """Return the sums over each attack's claims of what they gain by labels alone."""
        of_claims = group_gains(self._ranks, self._targets, self.owners, self.groups)
        sums: Float[np.ndarray, " attacks"] = of_claims @ self._is_of_attack
        return sums

    @property
    def _is_of_attack(self) -> Float[np.ndarray, "claims attacks"]:
        is_of_attack: Float[np.ndarray, "claims attacks"] = (
            self._attacks[:, None] == np.arange(self._attack_count)
        ).astype(np.float64)
        return is_of_attack


def record_ranks(
    scores: Float[np.ndarray, "claims records"],
) -> Float[np.ndarray, "claims records"]:
    """Return the rank of each record's score within its claim, from 0 to 1; ties share it."""
    ranks = np.array([_average_ranks(own) for own in scores]).reshape(scores.shape)
    shares: Float[np.ndarray, "claims records"] = (ranks - 0.5) / scores.shape[1]
    return shares


def _average_ranks(scores: Float[np.ndarray, " records"]) -> Float[np.ndarray, " records"]:
    """Return ranks from 1 on; equal scores share the mean of theirs."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks: Float[np.ndarray, " records"] = (counts.cumsum() - (counts - 1) / 2)[place]
    return ranks


def membership_fits(
    ranks: Float[np.ndarray, "claims records"],
    targets: Int[np.ndarray, " claims"],
    owners: Int[np.ndarray, "pairings records"],
) -> Float[np.ndarray, "pairings claims"]:
    """Return how much higher members rank than non-members, for each claim and pairing.

    It is a difference of mean ranks. If there is one target, it is the AUC less 0.5.

    Args:
        ranks: the rank of each record in each claim.
        targets: the target of each claim, as a number of an owner.
        owners: the owner of each record, or `NON_MEMBER`. The number of records of an owner is
            the same in all pairings.

    """
    means = np.zeros((len(owners), len(ranks)))
    for target in np.unique(targets):
        about = targets == target
        means[:, about] = _mean_rank(owners == target, ranks[about])
    differences: Float[np.ndarray, "pairings claims"] = means - _mean_rank(
        owners == NON_MEMBER, ranks
    )
    return differences


def group_gains(
    ranks: Float[np.ndarray, "claims records"],
    targets: Int[np.ndarray, " claims"],
    owners: Int[np.ndarray, " records"],
    groups: Int[np.ndarray, " records"],
) -> Float[np.ndarray, " claims"]:
    """Return the mean AUC of each claim over all pairings within groups, less 0.5.

    A member of group a and a non-member of group b are then two random records of their groups.
    So the AUC is the mean, over all such pairs, of the probability that a random record of a
    ranks above one of b; within a group it is 0.5.

    Args:
        ranks: the rank of each record in each claim.
        targets: the target of each claim, as a number of an owner.
        owners: the owner of each record, or `NON_MEMBER`.
        groups: the group of each record, within which owners are permuted.

    """
    names, group = np.unique(groups, return_inverse=True)
    sizes = np.bincount(group)
    others = np.bincount(group[owners == NON_MEMBER], minlength=len(names))
    gains = []
    for of_claim, target in zip(ranks, targets, strict=True):
        held = np.bincount(group[owners == target], minlength=len(names))
        gain = 0.0
        for number in np.flatnonzero(others):
            level = np.sort(of_claim[group == number])
            below, not_above = (
                np.searchsorted(level, of_claim, "left"),
                np.searchsorted(level, of_claim, "right"),
            )
            wins = np.bincount(group, (below + not_above) / 2 / len(level)) / sizes
            gain += float(held @ (wins - 0.5)) * float(others[number])
        gains.append(gain / float(held.sum() * others.sum()))
    return np.array(gains)


def _mean_rank(
    is_counted: Bool[np.ndarray, "pairings records"],
    ranks: Float[np.ndarray, "claims records"],
) -> Float[np.ndarray, "pairings claims"]:
    # All pairings count as many records.
    means: Float[np.ndarray, "pairings claims"] = (
        is_counted.astype(np.float64) @ ranks.T / is_counted[0].sum()
    )
    return means
