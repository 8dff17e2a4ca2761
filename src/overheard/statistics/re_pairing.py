"""Re-pairings of claims and targets, which give the null distribution of a statistic."""

from collections.abc import Sequence
from itertools import permutations, product
from math import factorial, prod

import numpy as np
from jaxtyping import Int

from overheard.core.seeds import Seed

MOST_ENUMERATED = 10_000
"""Up to this number all pairings are enumerated; above it, some are drawn at random."""

RANDOM_PAIRINGS = 999
"""Pairings drawn at random beside the true one. The smallest p-value is then 0.001."""


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


def count_pairings(group_sizes: Sequence[int]) -> int:
    """Return the number of permutations within groups of these sizes.

    >>> count_pairings([4]), count_pairings([3, 3]), count_pairings([5])
    (24, 36, 120)
    """
    return prod(map(factorial, group_sizes))


def smallest_p_value(
    possible: int, most: int = MOST_ENUMERATED, draws: int = RANDOM_PAIRINGS
) -> float:
    """Return the smallest p-value that a test with this number of possible pairings can reach.

    Args:
        possible: number of pairings, the true one included; see `count_pairings`.
        most: the largest number of pairings that is enumerated.
        draws: number of random pairings if there are more.

    """
    return 1 / (possible if possible <= most else 1 + draws)
