"""Claims about linked targets, compared with senders that are permuted within rounds."""

from collections import defaultdict
from collections.abc import Sequence
from math import factorial, prod

import numpy as np
from jaxtyping import Float, Int

from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.findings.finding import Finding
from overheard.findings.re_paired_fits import (
    RePairedFits,
    count_values,
    no_test,
    number_values,
    planned_by_attack,
    re_pair_runs,
    smallest_p_value,
)
from overheard.questions.same_sender.statistics.linkage_fits import linkage_fits, pair_fits


def re_pair_senders(findings: Sequence[Finding], seed: Seed) -> RePairedFits:
    """Return how well the claims fit the true senders, and senders permuted within rounds.

    Targets that sent in the same rounds form a group. All runs are permuted independently.
    """
    by_attack = planned_by_attack(findings)
    by_run: dict[int, list[Finding]] = defaultdict(list)
    for finding in (finding for members in by_attack.values() for finding in members):
        by_run[finding.cell.seed].append(finding)
    if not by_run:
        return no_test("no claim was checked")
    attacks = list(by_attack)
    runs = [_Run(members, attacks) for members in by_run.values()]
    possible = prod(run.arrangements for run in runs)
    fits = np.sum(
        [
            run.fits(pairings)
            for run, pairings in zip(
                runs, re_pair_runs([run.groups for run in runs], seed), strict=True
            )
        ],
        axis=0,
    )
    return RePairedFits(fits, smallest_p_value(possible, len(fits)))


class _Run:
    """The targets of one run, with the claims of all attacks about their pairs."""

    def __init__(self, findings: Sequence[Finding], attacks: Sequence[str]) -> None:
        targets = number_values(finding.target for finding in findings)
        users = {finding.target: finding.true_user for finding in findings}
        rounds = {finding.target: finding.sent_rounds for finding in findings}
        round_of, sender_of = number_values(rounds.values()), number_values(users.values())
        self.groups = np.array([round_of[rounds[target]] for target in targets])
        self.senders = np.array([sender_of[users[target]] for target in targets])
        self.scores = np.full((len(attacks), len(targets), len(targets)), np.nan)
        for finding in findings:
            attack = attacks.index(finding.cell.attack)
            places = [targets.get(Party(other), -1) for other in finding.candidates]
            for place, score in zip(places, finding.claimed, strict=True):
                if place >= 0:
                    self.scores[attack, targets[finding.target], place] = score

    @property
    def arrangements(self) -> int:
        """The number of different ways to assign senders; at least 1.

        Permutations that are the same in all rounds change only the senders' names.
        """
        sizes = count_values(self.groups.tolist()).values()
        return prod(map(factorial, sizes)) // factorial(max(sizes))

    def fits(
        self, pairings: Int[np.ndarray, "pairings targets"]
    ) -> Float[np.ndarray, "pairings attacks"]:
        """Return the fits of each attack; an attack without claims here adds 0."""
        return np.stack(
            [linkage_fits(pair_fits(table), self.senders, pairings) for table in self.scores],
            axis=1,
        )
