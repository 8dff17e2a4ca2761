"""The scale of a statistic in each round: that of simulated runs without a shift."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import final

ROOT = 2 / 3
"""Statistics are distances. This power of them is nearly normal, as is the cube root of their
squares (Wilson and Hilferty 1931)."""

MIN_RELATIVE_DEVIATION = 1e-6
"""Smallest deviation in a round, relative to the largest mean of any round: differences by
rounding must not look like evidence."""


@final
@dataclass(frozen=True, slots=True)
class RoundScale:
    """The mean and the deviation of the root of a statistic by round, in simulated runs.

    Models change most in the first rounds, in every run. On one scale for all rounds, those
    rounds would hide any later shift.

    Args:
        mean: the mean by round.
        deviation: the standard deviation by round, above 0.

    """

    mean: Mapping[int, float]
    deviation: Mapping[int, float]

    def standardise(self, statistic: Mapping[int, float]) -> dict[int, float]:
        """Return the statistic in deviations above its mean, in rounds that have a scale."""
        return {
            number: (value**ROOT - self.mean[number]) / self.deviation[number]
            for number, value in statistic.items()
            if number in self.mean
        }


def fit_round_scale(runs: Sequence[Mapping[int, float]]) -> RoundScale:
    """Fit the scale to the statistics of simulated runs, 0 or more each.

    A round has a scale if every run has a statistic there. A statistic that is 0 in all rounds
    of all runs has none.
    """
    rounds = set.intersection(*(set(run) for run in runs)) if runs else set[int]()
    roots = {number: [run[number] ** ROOT for run in runs] for number in sorted(rounds)}
    mean = {number: fmean(values) for number, values in roots.items()}
    least = MIN_RELATIVE_DEVIATION * max(mean.values(), default=0.0)
    if least == 0:
        return RoundScale({}, {})
    deviation = {number: max(pstdev(values), least) for number, values in roots.items()}
    return RoundScale(mean, deviation)
