"""How well the claims of a threat fit the truth, and what might as well have been the truth."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import factorial, prod
from typing import TypeVar, final

import numpy as np
from jaxtyping import Float, Int

from overheard.core.seeds import Seed
from overheard.findings.finding import Finding
from overheard.statistics.pairing_sums import sum_over_pairings
from overheard.statistics.re_pairing import MOST_ENUMERATED, count_pairings, re_pairings

Value = TypeVar("Value", bound=Hashable)


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


def smallest_p_value(possible: int, pairings: int) -> float:
    """Return the smallest p-value of a test with some of the possible pairings.

    Pairings that change nothing tie with the true one. Of `possible` different ones, the share
    of those is 1 / `possible` or, if few are drawn, 1 / `pairings`.
    """
    return max(1 / possible, 1 / pairings)


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


def planned_by_attack(findings: Sequence[Finding]) -> Mapping[str, Sequence[Finding]]:
    """Return the checked findings of the planned runs, by attack; an attack may have none."""
    by_attack: dict[str, list[Finding]] = {finding.cell.attack: [] for finding in findings}
    for finding in findings:
        if finding.is_checked and not finding.cell.is_control:
            by_attack[finding.cell.attack].append(finding)
    return by_attack
