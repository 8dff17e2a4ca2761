"""Draws the people of runs again and again, for figures that are no mean of single findings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

from overheard.core.seeds import Seed
from overheard.statistics.estimate import DRAWS, Estimate, interval

AT_ONCE = 250
"""Draws worked out together: a table of them by 5,000 targets then takes 10 MB."""

Statistic = Callable[[Int[np.ndarray, "draws people"]], Float[np.ndarray, " draws"]]
"""A figure of one run, if each of its people counts so many times; for many draws at once. NaN
where these people tell nothing: the draw is then left out."""


@final
@dataclass(frozen=True, slots=True)
class Resampled:
    """One run, of which a figure is told.

    Args:
        known: how many of its people are known to the attacker; they come first.
        unknown: how many are not. The two kinds are drawn apart, so that each keeps its number.
        statistic: the figure.

    """

    known: int
    unknown: int
    statistic: Statistic

    def once(self) -> float:
        """The figure with each of the people counted once."""
        ones = np.ones((1, self.known + self.unknown), dtype=np.int64)
        return float(self.statistic(ones)[0])


def resampled(runs: Sequence[Resampled], seed: Seed, value: float | None = None) -> Estimate:
    """The mean of a figure over runs, with its interval by a two-stage bootstrap.

    Runs are drawn with replacement, then people within a run, each with all that is theirs;
    with one run, only the people. Each run weighs alike.

    Args:
        runs: one or more.
        seed: of the draws.
        value: the mean itself, where it is told more exactly than the draws tell it.

    """
    mean = float(np.mean([run.once() for run in runs])) if value is None else value
    if sum(run.known + run.unknown for run in runs) < 2:
        return Estimate(mean, None, None)
    generator, total = seed.numpy(), np.zeros(DRAWS)
    for _ in runs:
        chosen = generator.integers(0, len(runs), DRAWS)
        for number, run in enumerate(runs):
            here = np.flatnonzero(chosen == number)
            for start in range(0, len(here), AT_ONCE):
                some = here[start : start + AT_ONCE]
                total[some] += run.statistic(_drawn(run, len(some), generator))
    told = total[np.isfinite(total)] / len(runs)
    return interval(mean, told) if len(told) else Estimate(mean, None, None)


def _drawn(
    run: Resampled, draws: int, generator: np.random.Generator
) -> Int[np.ndarray, "draws people"]:
    kinds = [size for size in (run.known, run.unknown) if size]
    return np.concatenate(
        [generator.multinomial(size, np.full(size, 1 / size), draws) for size in kinds], 1
    )
