"""Means over targets and runs, with bootstrap confidence intervals."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overheard.core.seeds import Seed

BOOTSTRAP_DRAWS = 2000
"""Bootstrap draws: the ends of a 95 % interval then vary by a few hundredths of its width."""

CONFIDENCE_LEVEL = 0.95
"""Level of confidence intervals."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate over targets and seeds, mostly a mean, with its 95 % interval.

    A single value has no interval: low and high are None.
    """

    mean: float
    low: float | None
    high: float | None


def estimate_mean(
    values: NDArray[np.float64],
    clusters: NDArray[np.int64],
    seed: Seed,
    users: NDArray[np.int64] | None = None,
) -> Estimate:
    """Estimate the mean of `values` with a two-stage bootstrap interval over `clusters`.

    Args:
        values: one per target.
        clusters: the run of each target.
        seed: the seed of the bootstrap draws.
        users: the user of each target. Users are resampled within a run, each with all their
            targets, as values of one user are correlated; None = one user per target.

    """
    mean = float(values.mean())
    if users is None:
        users = np.arange(len(values))
    runs = [_sum_by_user(values, users, clusters == run) for run in np.unique(clusters)]
    if sum(len(run.counts) for run in runs) < 2:
        return Estimate(mean, None, None)
    generator = seed.numpy()
    sums, counts = np.zeros(BOOTSTRAP_DRAWS), np.zeros(BOOTSTRAP_DRAWS)
    for _ in runs:
        chosen = generator.integers(0, len(runs), BOOTSTRAP_DRAWS)
        for number, run in enumerate(runs):
            is_chosen = chosen == number
            picks = generator.integers(
                0, len(run.counts), (int(is_chosen.sum()), len(run.counts))
            )
            sums[is_chosen] += run.sums[picks].sum(1)  # (draws,)
            counts[is_chosen] += run.counts[picks].sum(1)
    return bootstrap_interval(mean, sums / counts)


def bootstrap_interval(mean: float, draws: NDArray[np.float64]) -> Estimate:
    """Return the estimate with the percentile interval of its bootstrap draws."""
    low, high = np.quantile(draws, [(1 - CONFIDENCE_LEVEL) / 2, (1 + CONFIDENCE_LEVEL) / 2])
    return Estimate(mean, float(low), float(high))


@dataclass(frozen=True, slots=True)
class _UserSums:
    """Sum and number of the values of each user in a run."""

    sums: NDArray[np.float64]
    counts: NDArray[np.int64]


def _sum_by_user(
    values: NDArray[np.float64], users: NDArray[np.int64], in_run: NDArray[np.bool_]
) -> _UserSums:
    _, index = np.unique(users[in_run], return_inverse=True)
    sums = np.bincount(index, values[in_run]).astype(np.float64)
    return _UserSums(sums, np.bincount(index))
