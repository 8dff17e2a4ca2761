"""A figure over many targets and runs, with the interval in which it would come out again."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overheard.core.seeds import Seed

DRAWS = 2000
"""Bootstrap draws: the ends of a 95 % interval then wander by a few hundredths of its width."""

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure, mostly a mean, over targets and seeds with its 95 % interval.

    From one value alone there is no interval: low and high are None.
    """

    mean: float
    low: float | None
    high: float | None


def estimate(
    values: NDArray[np.float64],
    clusters: NDArray[np.int64],
    seed: Seed,
    people: NDArray[np.int64] | None = None,
) -> Estimate:
    """The mean of `values` with a two-stage bootstrap interval over `clusters`.

    Args:
        values: one a target.
        clusters: the run of each.
        seed: of the draws.
        people: who stands behind each, where several targets of a run may be of one person:
            people are then drawn within a run, each with all that is theirs, since what one
            person sends clumps; None = each target stands for itself.

    """
    mean = float(values.mean())
    if people is None:
        people = np.arange(len(values))
    whole = [_people_of(values, people, clusters == run) for run in np.unique(clusters)]
    if sum(len(run.counts) for run in whole) < 2:
        return Estimate(mean, None, None)
    generator = seed.numpy()
    sums, counts = np.zeros(DRAWS), np.zeros(DRAWS)
    for _ in whole:
        chosen = generator.integers(0, len(whole), DRAWS)
        for number, run in enumerate(whole):
            here = chosen == number
            picks = generator.integers(0, len(run.counts), (int(here.sum()), len(run.counts)))
            sums[here] += run.sums[picks].sum(1)  # (draws,)
            counts[here] += run.counts[picks].sum(1)
    return interval(mean, sums / counts)


def interval(mean: float, draws: NDArray[np.float64]) -> Estimate:
    """A figure with the interval that its bootstrap draws span."""
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(mean, float(low), float(high))


@dataclass(frozen=True, slots=True)
class _People:
    """Sum and number of the values of each person of a run."""

    sums: NDArray[np.float64]
    counts: NDArray[np.int64]


def _people_of(
    values: NDArray[np.float64], people: NDArray[np.int64], here: NDArray[np.bool_]
) -> _People:
    _, person = np.unique(people[here], return_inverse=True)
    sums = np.bincount(person, values[here]).astype(np.float64)
    return _People(sums, np.bincount(person))
