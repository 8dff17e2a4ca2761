"""Intervals over runs or users, for rates that are not means of single findings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import final

import numpy as np
from jaxtyping import Float, Int

from overheard.core.seeds import Seed
from overheard.statistics.estimate import (
    BOOTSTRAP_DRAWS,
    FEWEST_RUNS,
    Estimate,
    student_estimate,
)
from overheard.statistics.exact_intervals import widen_proportion

DRAWS_AT_ONCE = 250
"""Draws computed at a time: a table of them by 5,000 targets takes 10 MB."""

RunStatistic = Callable[[Int[np.ndarray, "draws users"]], Float[np.ndarray, " draws"]]
"""A statistic of one run, given how often each user was drawn, for many draws at once. NaN if
it is undefined for a draw: the draw is then left out."""


@final
@dataclass(frozen=True, slots=True)
class ResampledRun:
    """A run with the statistic to bootstrap.

    Args:
        known_users: number of users that the attacker knows; they come first.
        unknown_users: number of other users. The two groups are resampled separately, so that
            each keeps its size.
        statistic: the statistic of the run.

    """

    known_users: int
    unknown_users: int
    statistic: RunStatistic

    def value(self) -> float:
        """Return the statistic with each user counted once."""
        ones = np.ones((1, self.known_users + self.unknown_users), dtype=np.int64)
        return float(self.statistic(ones)[0])


def bootstrap_mean(
    runs: Sequence[ResampledRun], seed: Seed, value: float | None = None
) -> Estimate:
    """Estimate the mean of a rate over runs, with an interval over runs or over their users.

    - 5 runs and more: Student's interval over the runs' rates. It covers the mean over further
      runs.
    - Fewer: Student's interval with the standard error of a bootstrap over the users within
      each run, with all their targets. It covers the mean over further users of these runs.

    It is the wider of this interval and the exact one of a proportion: see `widen_proportion`.
    All runs have equal weight.

    Args:
        runs: one or more; the statistic of each is a rate from 0 to 1.
        seed: the seed of the draws.
        value: the mean itself, if known more exactly than from the runs' statistics.

    """
    values = np.array([run.value() for run in runs])
    mean = float(values.mean()) if value is None else value
    users = sum(run.known_users + run.unknown_users for run in runs)
    if len(runs) >= FEWEST_RUNS:
        error = float(values.std(ddof=1)) / len(runs) ** 0.5
        estimate = student_estimate(mean, error, float(len(runs) - 1), "runs")
        return widen_proportion(estimate, error, users)
    degrees = users - len(runs)
    if degrees < 1:
        return Estimate(mean, None, None)
    generator = seed.numpy()
    variances = [_bootstrap_variance(run, generator) for run in runs]
    if not np.isfinite(variances).all():
        return Estimate(mean, None, None)
    error = float(np.sum(variances)) ** 0.5 / len(runs)
    estimate = student_estimate(mean, error, float(degrees), "these runs")
    return widen_proportion(estimate, error, users)


def _bootstrap_variance(run: ResampledRun, generator: np.random.Generator) -> float:
    """Return the variance of a run's statistic over users; NaN if no draw defines it.

    The bootstrap draws from the users at hand, whose variance is too small by 1 / their number.
    """
    users = run.known_users + run.unknown_users
    if users < 2:
        return 0.0
    drawn = np.concatenate(
        [
            run.statistic(_draw_users(run, DRAWS_AT_ONCE, generator))
            for _ in range(0, BOOTSTRAP_DRAWS, DRAWS_AT_ONCE)
        ]
    )
    finite = drawn[np.isfinite(drawn)]
    return float(finite.var()) * users / (users - 1) if len(finite) else nan


def _draw_users(
    run: ResampledRun, draws: int, generator: np.random.Generator
) -> Int[np.ndarray, "draws users"]:
    sizes = [size for size in (run.known_users, run.unknown_users) if size]
    return np.concatenate(
        [generator.multinomial(size, np.full(size, 1 / size), draws) for size in sizes], 1
    )
