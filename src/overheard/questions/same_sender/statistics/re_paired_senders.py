"""Claims about linked targets, compared with senders that are permuted within rounds."""

from collections import defaultdict
from collections.abc import Sequence
from math import factorial, prod

import numpy as np
from jaxtyping import Float, Int

from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.findings.controlled_findings import planned_by_attack
from overheard.findings.finding import Finding
from overheard.statistics.permutation_test import (
    RePairedFits,
    count_values,
    no_test,
    number_values,
    re_pair_runs,
    smallest_p_value,
)

PAIRS_AT_ONCE = 2_000_000
"""Entries of a table that are gathered at a time: 16 MB."""


def re_pair_senders(findings: Sequence[Finding], seed: Seed) -> RePairedFits:
    """Return how well the claims fit the true senders, and senders permuted within rounds.

    Targets that sent in the same rounds form a group. Who recurs in several runs is permuted
    alike in all of them, since claims about the data of one user are correlated between runs.
    Runs without a user in common are permuted independently.
    """
    by_attack = planned_by_attack(findings)
    by_run: dict[int, list[Finding]] = defaultdict(list)
    for finding in (finding for members in by_attack.values() for finding in members):
        by_run[finding.cell.seed].append(finding)
    if not by_run:
        return no_test("no claim was checked")
    attacks = list(by_attack)
    crowds = _link_runs([_Run(members, attacks) for members in by_run.values()])
    possible = prod(crowd.arrangements for crowd in crowds)
    fits = np.sum(
        [
            run.fits(crowd.pairings_of(run, pairings))
            for crowd, pairings in zip(
                crowds, re_pair_runs([crowd.groups for crowd in crowds], seed), strict=True
            )
            for run in crowd.runs
        ],
        axis=0,
    )
    return RePairedFits(fits, smallest_p_value(possible, len(fits)))


Place = tuple[tuple[int, ...], str | None, int]
"""The rounds in which a target sent, its user, and its number among the user's in these."""


class _Run:
    """The targets of one run, with the claims of all attacks about their pairs."""

    def __init__(self, findings: Sequence[Finding], attacks: Sequence[str]) -> None:
        targets = number_values(finding.target for finding in findings)
        users = {finding.target: finding.true_user for finding in findings}
        rounds = {finding.target: finding.sent_rounds for finding in findings}
        sender_of = number_values(users.values())
        self.places = _number_repeats([(rounds[target], users[target]) for target in targets])
        self.senders = np.array([sender_of[users[target]] for target in targets])
        self.scores = np.full((len(attacks), len(targets), len(targets)), np.nan)
        for finding in findings:
            attack = attacks.index(finding.cell.attack)
            places = [targets.get(Party(other), -1) for other in finding.claimed.candidates]
            for place, score in zip(places, finding.claimed.numbers, strict=True):
                if place >= 0:
                    self.scores[attack, targets[finding.target], place] = score

    def fits(
        self, pairings: Int[np.ndarray, "pairings targets"]
    ) -> Float[np.ndarray, "pairings attacks"]:
        """Return the fits of each attack; an attack without claims here adds 0."""
        return np.stack(
            [linkage_fits(pair_fits(table), self.senders, pairings) for table in self.scores],
            axis=1,
        )


class _Crowd:
    """Runs that have users in common, who are permuted alike in all of them."""

    def __init__(self, runs: Sequence[_Run]) -> None:
        self.runs = runs
        self._numbers = number_values(place for run in runs for place in run.places)
        rounds = number_values(sent for sent, _, _ in self._numbers)
        self.groups = np.array([rounds[sent] for sent, _, _ in self._numbers])

    @property
    def arrangements(self) -> int:
        """The number of different ways to assign senders; at least 1.

        Permutations that are the same in all rounds change only the senders' names.
        """
        sizes = count_values(self.groups.tolist()).values()
        return prod(map(factorial, sizes)) // factorial(max(sizes))

    def pairings_of(
        self, run: _Run, pairings: Int[np.ndarray, "pairings places"]
    ) -> Int[np.ndarray, "pairings targets"]:
        """Return the permutations of a run's targets.

        A place that is not in this run is skipped: the one that follows it in the permutation
        takes its turn. Of random permutations, all permutations of the rest are equally likely.
        """
        numbers = np.array([self._numbers[place] for place in run.places])
        target_at = np.full(len(self.groups), -1)
        target_at[numbers] = np.arange(len(numbers))
        rows = np.arange(len(pairings))[:, None]
        chosen = pairings[:, numbers]
        while (target_at[chosen] < 0).any():
            chosen = np.where(target_at[chosen] < 0, pairings[rows, chosen], chosen)
        found: Int[np.ndarray, "pairings targets"] = target_at[chosen]
        return found


def _number_repeats(
    pairs: Sequence[tuple[tuple[int, ...], str | None]],
) -> Sequence[Place]:
    counts: dict[tuple[tuple[int, ...], str | None], int] = defaultdict(int)
    places = list[Place]()
    for sent, user in pairs:
        places.append((sent, user, counts[sent, user]))
        counts[sent, user] += 1
    return places


def _link_runs(runs: Sequence[_Run]) -> Sequence[_Crowd]:
    """Return the runs, grouped so that no two groups have a user in common."""
    groups = list[list[_Run]]()
    for run in runs:
        users = {user for _, user, _ in run.places}
        linked = [
            group
            for group in groups
            if any(user in users for other in group for _, user, _ in other.places)
        ]
        apart = [group for group in groups if group not in linked]
        groups = [*apart, [*(other for group in linked for other in group), run]]
    return [_Crowd(group) for group in groups]


def pair_fits(
    scores: Float[np.ndarray, "targets targets"],
) -> Float[np.ndarray, "targets targets"]:
    """Return the evidence that two targets have one sender, as -ln(rank) for each target.

    Args:
        scores: the claimed evidence, larger = more; NaN = not compared, such as a target with
            itself.

    """
    is_compared = np.isfinite(scores)
    # What is not compared ranks last, so that it changes no other rank.
    from scipy.stats import rankdata  # only here: importing it takes half a second

    ranks = rankdata(np.where(is_compared, -scores, np.inf), axis=1)
    fits: Float[np.ndarray, "targets targets"] = np.where(is_compared, -np.log(ranks), 0.0)
    return fits


def linkage_fits(
    fits: Float[np.ndarray, "targets targets"],
    senders: Int[np.ndarray, " targets"],
    pairings: Int[np.ndarray, "pairings targets"],
) -> Float[np.ndarray, " pairings"]:
    """Return for each pairing the sum of `fits` over all pairs of targets of one sender.

    Args:
        fits: the evidence of each pair.
        senders: the sender of each target.
        pairings: permutations of targets within rounds: a sender gets other targets, of the
            same rounds. To permute users among targets of all rounds would change nothing:
            the same targets would have one sender.

    """
    one, other = np.nonzero((senders[:, None] == senders) & ~np.eye(len(senders), dtype=bool))
    sums = np.zeros(len(pairings))
    step = max(1, PAIRS_AT_ONCE // max(1, len(one)))
    for start in range(0, len(pairings), step):
        part = pairings[start : start + step]
        sums[start : start + step] = fits[part[:, one], part[:, other]].sum(1)
    return sums
