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


def estimate(values: NDArray[np.float64], clusters: NDArray[np.int64], seed: Seed) -> Estimate:
    """The mean of `values` with a two-stage bootstrap interval over `clusters`."""
    mean = float(values.mean())
    if len(values) < 2:
        return Estimate(mean, None, None)
    generator = seed.numpy()
    groups = [values[clusters == cluster] for cluster in np.unique(clusters)]
    sums, counts = np.zeros(DRAWS), np.zeros(DRAWS)
    for _ in groups:
        chosen = generator.integers(0, len(groups), DRAWS)
        for number, group in enumerate(groups):
            here = chosen == number
            picks = generator.integers(0, len(group), (int(here.sum()), len(group)))
            sums[here] += group[picks].sum(1)  # (draws,)
            counts[here] += len(group)
    means = sums / counts
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(mean, float(low), float(high))
