"""Bootstrap over runs and users, for statistics that are not means of single findings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

from overheard.core.seeds import Seed
from overheard.statistics.estimate import BOOTSTRAP_DRAWS, Estimate, bootstrap_interval

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
    """Estimate the mean of a statistic over runs, with a two-stage bootstrap interval.

    Runs are drawn with replacement, then users within each run, with all their targets. With
    one run only users are drawn. All runs have equal weight.

    Args:
        runs: one or more.
        seed: the seed of the draws.
        value: the mean itself, if known more exactly than from the runs' statistics.

    """
    mean = float(np.mean([run.value() for run in runs])) if value is None else value
    if sum(run.known_users + run.unknown_users for run in runs) < 2:
        return Estimate(mean, None, None)
    generator, total = seed.numpy(), np.zeros(BOOTSTRAP_DRAWS)
    for _ in runs:
        chosen = generator.integers(0, len(runs), BOOTSTRAP_DRAWS)
        for number, run in enumerate(runs):
            draws = np.flatnonzero(chosen == number)
            for start in range(0, len(draws), DRAWS_AT_ONCE):
                batch = draws[start : start + DRAWS_AT_ONCE]
                total[batch] += run.statistic(_draw_users(run, len(batch), generator))
    means = total[np.isfinite(total)] / len(runs)
    return bootstrap_interval(mean, means) if len(means) else Estimate(mean, None, None)


def _draw_users(
    run: ResampledRun, draws: int, generator: np.random.Generator
) -> Int[np.ndarray, "draws users"]:
    sizes = [size for size in (run.known_users, run.unknown_users) if size]
    return np.concatenate(
        [generator.multinomial(size, np.full(size, 1 / size), draws) for size in sizes], 1
    )
