"""Permutation tests: pairings of claims and targets, statistics and p-values.

If claims have nothing to do with their targets, all pairings of claims and targets are equally
likely. A test compares how well the claims fit in the true pairing and in the others.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations, product
from math import factorial, prod
from typing import TypeVar, final

import numpy as np
from jaxtyping import Bool, Float, Int

from overheard.core.seeds import Seed

Value = TypeVar("Value", bound=Hashable)


MOST_ENUMERATED = 10_000
"""Up to this number all pairings are enumerated; above it, some are drawn at random."""


RANDOM_PAIRINGS = 999
"""Pairings drawn at random beside the true one. The smallest p-value is then 0.001."""


FIT_FLOOR = 0.01
"""Added to a probability inside the logarithm of `log_fit`, so that a claim of 0 for what is
true has a finite cost."""


TIE = 1e-9
"""Statistics that differ by less than this part of their spread are tied: the same numbers
summed in another order differ by rounding."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class RePairedFits:
    """How well all claims of each attack fit the targets of each pairing.

    Args:
        fits: larger = better; row 0 is the true pairing, and all pairings are equally likely if
            the claims have nothing to do with their targets. No rows = there is no test.
        smallest_p_value: the smallest p-value that these pairings can give; 1 without a test.
        why_none: why there is no test; "" if there is one.
        common_gains: by attack, the mean gain in the headline score over all pairings: what
            claims gain that tell no target from another. Empty = 0, as for most questions.

    """

    fits: Float[np.ndarray, "pairings attacks"]
    smallest_p_value: float
    why_none: str = ""
    common_gains: tuple[float, ...] = ()


def no_test(why: str) -> RePairedFits:
    """Return that there is no test, and why."""
    return RePairedFits(np.zeros((0, 0)), 1.0, why)


def re_pair_units(
    fits: Float[np.ndarray, "attacks units units"],
    groups: Int[np.ndarray, " units"],
    kinds: Sequence[Hashable],
    seed: Seed,
) -> RePairedFits:
    """Return the sums of fits over permutations of units within groups.

    Args:
        fits: how well the claims about each unit fit the truth about every unit.
        groups: the group of each unit.
        kinds: equal for units with equal truths, since exchanging them changes nothing.
        seed: the seed of random permutations.

    """
    pairings = re_pairings(groups, seed)
    possible = count_arrangements(groups.tolist(), kinds)
    return RePairedFits(
        sum_over_pairings(fits, pairings), smallest_p_value(possible, len(pairings))
    )


def re_pair_runs(
    groups: Sequence[Int[np.ndarray, " _targets"]], seed: Seed
) -> Iterator[Int[np.ndarray, "pairings _targets"]]:
    """Yield the pairings of each run; a row of all runs together is one pairing.

    Args:
        groups: the group of each target, for each run. Targets are permuted within groups.
        seed: the seed of random pairings.

    """
    sizes = [np.unique(one, return_counts=True)[1].tolist() for one in groups]
    if count_pairings([size for run in sizes for size in run]) > MOST_ENUMERATED:
        for number, one in enumerate(groups):
            yield re_pairings(one, seed.child("run", number), most=0)
        return
    starts = np.cumsum([0, *map(len, groups)])
    firsts = np.cumsum([0, *(int(one.max()) + 1 for one in groups)])
    joint = np.concatenate([one + first for one, first in zip(groups, firsts, strict=False)])
    pairings = re_pairings(joint, seed)
    for start, end in pairwise(starts.tolist()):
        yield pairings[:, start:end] - start


def re_pairings(
    groups: Int[np.ndarray, " targets"],
    seed: Seed,
    most: int = MOST_ENUMERATED,
    draws: int = RANDOM_PAIRINGS,
) -> Int[np.ndarray, "pairings targets"]:
    """Return pairings of claims with targets of the same group; the first is the true one.

    A row gives for each claim the index of the target that it is compared with. The rows are
    all permutations within the groups if there are at most `most`. Otherwise they are the true
    pairing and `draws` random ones.

    Args:
        groups: the group of each target, such as its run.
        seed: the seed of random pairings.
        most: the largest number of pairings to enumerate.
        draws: number of random pairings.

    """
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    if count_pairings([len(one) for one in members]) <= most:
        pairings = np.empty((1, len(groups)), dtype=np.int64)
        for one in members:
            orders = np.array(list(permutations(one.tolist())))
            repeats, pairings = len(pairings), np.repeat(pairings, len(orders), axis=0)
            pairings[:, one] = np.tile(orders, (repeats, 1))
        return pairings
    generator = seed.numpy()
    pairings = np.tile(np.arange(len(groups)), (1 + draws, 1))
    for one in members:
        pairings[1:, one] = one[generator.random((draws, len(one))).argsort(1)]
    return pairings


def re_drawn_runs(
    alternatives: Sequence[int],
    seed: Seed,
    most: int = MOST_ENUMERATED,
    draws: int = RANDOM_PAIRINGS,
) -> Int[np.ndarray, "draws runs"]:
    """Return choices of one alternative for each run; the first row is what happened.

    Alternatives of a run are equally likely under the null hypothesis. Examples are partitions
    that are drawn anew, and controls that could as well be the planned run. Alternative 0 is
    what happened. The rows are all combinations if there are at most `most`. Otherwise they are
    what happened and `draws` random combinations.

    Args:
        alternatives: the number of alternatives of each run, including what happened.
        seed: the seed of random combinations.
        most: the largest number of combinations to enumerate.
        draws: number of random combinations.

    """
    if prod(alternatives) <= most:
        return np.array(list(product(*map(range, alternatives))), dtype=np.int64)
    choices = np.zeros((1 + draws, len(alternatives)), dtype=np.int64)
    choices[1:] = seed.numpy().integers(0, np.array(alternatives), (draws, len(alternatives)))
    return choices


def smallest_p_value(possible: int, pairings: int | None = None) -> float:
    """Return the smallest p-value of a test with some of the possible pairings.

    Pairings that change nothing tie with the true one. Of `possible` different ones, the share
    of those is 1 / `possible` or, if few are drawn, 1 / `pairings`.

    Args:
        possible: number of different pairings, the true one included; see `count_pairings`.
        pairings: number of pairings that are compared; None = as many as `re_pairings` gives.

    """
    if pairings is None:
        pairings = possible if possible <= MOST_ENUMERATED else 1 + RANDOM_PAIRINGS
    return max(1 / possible, 1 / pairings)


def count_pairings(group_sizes: Sequence[int]) -> int:
    """Return the number of permutations within groups of these sizes.

    >>> count_pairings([4]), count_pairings([3, 3]), count_pairings([5])
    (24, 36, 120)
    """
    return prod(map(factorial, group_sizes))


def count_arrangements(groups: Sequence[Hashable], kinds: Sequence[Hashable]) -> int:
    """Return the number of different ways to permute kinds within groups.

    >>> count_arrangements([0, 0, 0, 0], ["a", "a", "b", "b"])
    6
    """
    sizes, repeats = count_values(groups), count_values(zip(groups, kinds, strict=True))
    return prod(map(factorial, sizes.values())) // prod(map(factorial, repeats.values()))


def count_values(values: Iterable[Value]) -> Mapping[Value, int]:
    """Return how often each value occurs, in the order of first occurrence."""
    counts = dict[Value, int]()
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return counts


def number_values(values: Iterable[Value]) -> Mapping[Value, int]:
    """Return a number for each value, from 0 on, in the order of first occurrence."""
    return {value: number for number, value in enumerate(dict.fromkeys(values))}


def log_fit(probabilities: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Return how well claimed probabilities fit what they are claimed of.

    It is ln(probability + `FIT_FLOOR`), a logarithmic score. A claim that has little to do with
    the truth is detected by it with fewer targets than by a distance, since a claim seldom
    gives a small probability to what it knows something about.
    """
    fits: Float[np.ndarray, "..."] = np.log(probabilities + FIT_FLOOR)
    return fits


def sum_over_pairings(
    fits: Float[np.ndarray, "attacks claims truths"],
    pairings: Int[np.ndarray, "pairings claims"],
) -> Float[np.ndarray, "pairings attacks"]:
    """Return the sum of the fits of all claims with the truths of each pairing.

    >>> fits = np.array([[[5.0, 0.0], [1.0, 7.0]]])
    >>> sum_over_pairings(fits, np.array([[0, 1], [1, 0]]))
    array([[12.],
           [ 1.]])
    """
    claims = np.arange(fits.shape[1])
    return np.stack([table[claims, pairings].sum(1) for table in fits], axis=1)


def sum_by_user(
    fits: Float[np.ndarray, "targets truths"],
    users: Int[np.ndarray, " targets"],
    runs: Int[np.ndarray, " targets"],
    count: int,
) -> Float[np.ndarray, "users truths"]:
    """Return the sum of the fits of each user's claims with each truth, over all runs.

    The mean of a run is subtracted first: what all claims of a run have in common says nothing
    of a single target.

    Args:
        fits: how well the claim about each target fits each possible truth; NaN = there is no
            claim or no truth, which counts as the mean.
        users: the user behind each target, from 0 to `count` - 1.
        runs: the run of each target.
        count: number of users.

    """
    sums = np.zeros((count, fits.shape[1]))
    for run in np.unique(runs):
        in_run, known = fits[runs == run], ~np.isnan(fits[runs == run])
        means = np.where(known, in_run, 0.0).sum(0) / np.maximum(known.sum(0), 1)
        np.add.at(sums, users[runs == run], np.where(known, in_run - means, 0.0))
    return sums


def group_by_runs(
    users: Int[np.ndarray, " targets"], runs: Int[np.ndarray, " targets"], count: int
) -> Int[np.ndarray, " users"]:
    """Return the group of each user, within which users are re-paired.

    A user is re-paired in all runs alike, since claims about one user are correlated
    between runs. Users of a group take part in the same runs. If somebody has nobody to be
    exchanged with, all users form one group: who takes part is then taken to be random.

    >>> group_by_runs(np.array([0, 1, 2, 0, 1]), np.array([0, 0, 0, 1, 1]), 3)
    array([0, 0, 0])
    >>> group_by_runs(np.array([0, 1, 2, 3, 0, 1]), np.array([0, 0, 0, 0, 1, 1]), 4)
    array([1, 1, 0, 0])
    """
    takes_part = np.zeros((count, int(runs.max()) + 1), dtype=np.int64)
    takes_part[users, runs] = 1
    _, groups, sizes = np.unique(takes_part, axis=0, return_inverse=True, return_counts=True)
    if sizes.min() == 1:
        return np.zeros(count, dtype=np.int64)
    flat: Int[np.ndarray, " users"] = groups.reshape(-1)
    return flat


def adjusted_p_values(
    statistics: Float[np.ndarray, "pairings attacks"],
) -> Float[np.ndarray, " attacks"]:
    """Return the p-value of each attack, adjusted for the number of attacks.

    The null hypothesis is that claims have nothing to do with the targets, so that all pairings
    of claims with targets are equally likely. Each column is standardised by its mean and
    spread over all pairings, the true one included. An attack's p-value is the share of the
    pairings whose largest standardised statistic reaches the attack's own. The largest is taken
    over this attack and the weaker ones (step-down max-T: Westfall and Young 1993, algorithm
    2.8). If the null hypothesis holds for all attacks, the smallest p-value is at most a with
    probability at most a, for any a.

    An attack without a statistic, or with the same one for all pairings, gets p = 1.

    Args:
        statistics: how well the claims fit the targets, larger = better, on the same pairings
            for all attacks. Row 0 is the true pairing. A column with NaN or infinity has no
            statistic.

    """
    count, attacks = statistics.shape
    if count == 0:
        raise ValueError("statistics needs the true pairing as its first row, got no row")
    p_values = np.ones(attacks)
    is_judged = _varies(statistics)
    if not is_judged.any():
        return p_values
    judged = statistics[:, is_judged]
    scores = (judged - judged.mean(0)) / judged.std(0)
    order = np.argsort(-scores[0], kind="stable")
    ordered = scores[:, order]
    # The largest statistic of each attack and all weaker ones, from the strongest attack on.
    largest = np.maximum.accumulate(ordered[:, ::-1], axis=1)[:, ::-1]
    shares = (largest >= ordered[0] - TIE).mean(0)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(shares)
    p_values[is_judged] = adjusted
    return p_values


def _varies(statistics: Float[np.ndarray, "pairings attacks"]) -> Bool[np.ndarray, " attacks"]:
    """Return for each attack whether it has statistics that differ among pairings."""
    is_finite = np.isfinite(statistics).all(0)
    known = np.where(is_finite, statistics, 0.0)
    varies: Bool[np.ndarray, " attacks"] = is_finite & (
        np.ptp(known, axis=0) > TIE * np.abs(known).max(0)
    )
    return varies
