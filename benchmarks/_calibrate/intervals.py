"""Synthetic figures of clients and runs, and whether their intervals cover the true mean."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import final

import numpy as np
from jaxtyping import Float

from _calibrate.audits import draw_noise
from _calibrate.cells import CLIENTS, AuditCell
from overheard.core.seeds import Seed
from overheard.statistics.estimate import FEWEST_RUNS
from overheard.statistics.run_means import estimate_mean
from overheard.statistics.selection import are_below, estimate_strongest

MEAN_ERROR = 0.02
"""Mean distance to 1 of the figures called "near 1"."""

AGREEMENT = 0.1
"""Share of the variance of hits that clients of a run have in common."""


@final
@dataclass(frozen=True, slots=True)
class Covered:
    """Whether the intervals of one audit cover.

    Args:
        one: whether the first attack's interval covers its true mean.
        best: whether the interval of the strongest attack covers the largest true mean.
        is_wrongly_below: whether all upper ends are below the largest true mean.

    """

    one: bool
    best: bool
    is_wrongly_below: bool


def draw_gains(cell: AuditCell, seed: Seed) -> Covered:
    """Draw normal gains of all attacks, with a true mean of 0 over runs.

    With fewer than 5 runs the intervals are to cover the means of these runs.
    """
    generator, apart = seed.numpy(), replace(cell, between=0.0)
    of_run = draw_noise(apart, generator, (1,))
    of_client = draw_noise(apart, generator, (cell.clients,))
    gains = cell.between**0.5 * of_run + (1 - cell.between) ** 0.5 * of_client
    true = (
        np.zeros(cell.attacks)
        if cell.runs >= FEWEST_RUNS
        else cell.between**0.5 * of_run.mean((1, 2))
    )
    run = np.repeat(np.arange(cell.runs), cell.clients)
    estimates = [estimate_mean(one.ravel(), run) for one in gains]
    one, best = estimates[0], estimate_strongest(estimates)
    return Covered(
        _contains(one.low, one.high, float(true[0])),
        _contains(best.low, best.high, float(true.max())),
        are_below(estimates, float(true.max())),
    )


def _contains(low: float | None, high: float | None, value: float) -> bool:
    assert low is not None
    assert high is not None
    return low <= value <= high


@final
@dataclass(frozen=True, slots=True)
class FigureCell:
    """Settings of synthetic figures that are not normal.

    Args:
        figures: their distribution; see `FIGURES`.
        runs: number of runs.
        clients: number of clients of a run.

    """

    figures: str
    runs: int
    clients: int

    @property
    def key(self) -> str:
        """The name of the cell in the file of results."""
        return ", ".join(f"{name} {value}" for name, value in asdict(self).items())


def figure_cells() -> Iterator[FigureCell]:
    """Yield all cells of figures that are not normal."""
    for figures, runs, clients in product(FIGURES, (1, 3, 5, 10), CLIENTS):
        yield FigureCell(figures, runs, clients)


def draw_figures(cell: FigureCell, seed: Seed) -> bool:
    """Draw the figures of clients; return whether their interval covers the true mean."""
    drawn = FIGURES[cell.figures](seed.numpy(), cell.runs, cell.clients)
    run = np.repeat(np.arange(cell.runs), cell.clients)
    estimate = estimate_mean(drawn.values.ravel(), run)
    true = drawn.mean if cell.runs >= FEWEST_RUNS else float(drawn.means_of_runs.mean())
    return _contains(estimate.low, estimate.high, true)


@final
@dataclass(frozen=True, slots=True)
class _Figures:
    """Figures of clients with the true mean of each run, and of all runs."""

    values: Float[np.ndarray, "runs clients"]
    means_of_runs: Float[np.ndarray, " runs"]
    mean: float


def _draw_hits(
    generator: np.random.Generator, runs: int, clients: int, mean: float
) -> _Figures:
    """Draw 0 or 1, with chances of the run that differ from the mean."""
    size = 1 / AGREEMENT - 1
    chances = generator.beta(mean * size, (1 - mean) * size, runs)
    hits = generator.random((runs, clients)) < chances[:, None]
    return _Figures(hits.astype(np.float64), chances, mean)


def _draw_skewed(generator: np.random.Generator, runs: int, clients: int) -> _Figures:
    """Draw lognormal figures, of which runs have three tenths of the variance of logarithms."""
    of_run = generator.normal(0, 0.3**0.5, runs)
    values = np.exp(of_run[:, None] + generator.normal(0, 0.7**0.5, (runs, clients)))
    return _Figures(values, np.exp(of_run + 0.35), float(np.exp(0.5)))


def _draw_near_one(generator: np.random.Generator, runs: int, clients: int) -> _Figures:
    """Draw figures such as an AUC, whose distances to 1 are exponential."""
    of_run = MEAN_ERROR * generator.gamma(4, 1 / 4, runs)
    values = 1 - of_run[:, None] * generator.exponential(1, (runs, clients))
    return _Figures(values, 1 - of_run, 1 - MEAN_ERROR)


FIGURES: Mapping[str, Callable[[np.random.Generator, int, int], _Figures]] = {
    "skewed": _draw_skewed,
    "near 1": _draw_near_one,
    "hits 50 %": lambda generator, runs, clients: _draw_hits(generator, runs, clients, 0.5),
    "hits 90 %": lambda generator, runs, clients: _draw_hits(generator, runs, clients, 0.9),
    "hits 98 %": lambda generator, runs, clients: _draw_hits(generator, runs, clients, 0.98),
}
"""The distributions. skewed: lognormal; near 1: 1 less an exponential of mean 0.02, with runs
that differ; hits: 0 or 1, with chances that differ between runs."""
