"""Claims about membership, compared with owners that are permuted among records."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from math import prod

import numpy as np
from jaxtyping import Float, Int

from overheard.core.seeds import Seed
from overheard.findings.finding import ArmRun, Finding, RecordExchange
from overheard.findings.re_paired_fits import (
    RePairedFits,
    count_arrangements,
    no_test,
    planned_by_attack,
    re_pair_runs,
    smallest_p_value,
)
from overheard.questions.membership.statistics.membership_fits import (
    NON_MEMBER,
    group_gains,
    membership_fits,
    record_ranks,
)

NOT_COUNTED = -2
"""The owner of a record that is neither a member of a target nor a non-member."""

TAKE_CANARIES = (
    "records of one user, or cut from one original, belong together, so nothing says which of "
    "them might as well have been members: take canaries"
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
        knows_labels = len(run.record_labels) == len(findings[0].true)
        self.exchange: RecordExchange = (
            run.record_exchange if knows_labels or run.record_exchange == "all" else "none"
        )
        targets = list(dict.fromkeys(finding.target for finding in findings))
        owners = np.full(len(findings[0].true), NOT_COUNTED)
        for finding in findings:
            true = np.array(finding.true)
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
            np.array([finding.claimed for finding in findings])[:, self._is_counted]
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
