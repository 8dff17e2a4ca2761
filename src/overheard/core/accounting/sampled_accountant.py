"""Bounds of epsilon for Gaussian noise on samples: Poisson, or of a fixed size."""

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from overheard.core.errors import PlanError
from overheard.core.mechanism import INSTALL_HINT, PrivacyRelation

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

POPULATION_SIZE = 10**6
"""Population size given to the accountant for sampling; only the sampling rate matters."""

MAX_ROUGH_EPSILON = 1000.0
"""Rough epsilon above which no upper bound is computed: its digits have no meaning."""

MAX_GRID_POINTS = 500_000
"""Most privacy losses of a draw; a coarser grid still gives bounds, but looser ones."""

LEAST_NOISE = 0.01
"""Noise multiplier from which more noise is tried for a lower bound of a huge epsilon."""

MAX_DRAWS_ABOVE = 200_000
"""Most draws whose privacy losses are composed for an upper bound: they take seconds."""

MAX_DRAWS_BELOW = 30_000
"""Most draws whose privacy losses are composed for a lower bound, which needs a finer grid."""

MAX_EXPONENT = 700.0
"""The largest exponent that a float has room for."""

LEAST_DELTA = 1e-12
"""Smallest delta of a lower bound: the accountant cuts off tails of up to 1e-15."""

FINEST_GRID = 1e-9
"""Smallest distance between two privacy losses."""

COARSEST_GRID = 5e-3
"""Largest distance between two privacy losses."""

USUAL_DELTA = 1e-5
"""The delta whose epsilon decides the grid of a whole curve."""

FEW_ORDERS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 256, 1024)
"""Orders of Renyi divergences that tell the size of epsilon, for the grid of a curve.

All 156 of them would take half of the time of a curve, and a bound takes some twenty curves."""


@dataclass(frozen=True, slots=True)
class PoissonNoise:
    """Gaussian noise on a sum of units, each sampled by itself with the same probability.

    Args:
        noise_multiplier: standard deviation of the noise, over the most by which one unit
            changes the sum: when it is added or removed, or when it is replaced, as `relation`
            says. Above 0.
        rate: probability that a unit is sampled in a draw (0..1).
        draws: number of draws of noise, with a new sample each.
        relation: in what neighboring data sets differ.

    """

    noise_multiplier: float
    rate: float
    draws: int
    relation: PrivacyRelation

    def upper_epsilon(self, delta: float) -> float:
        """Return an upper bound of epsilon by the distribution of the privacy loss (PLD).

        Both directions count, such as adding and removing a unit. Losses are rounded up on a
        grid (Doroshenko et al. 2022, PoPETs, "Connect the Dots"). Returns infinity above some
        1,000. Above `MAX_DRAWS_ABOVE` it is the bound by Renyi divergences, which is looser, or
        infinite if there is none.

        >>> round(PoissonNoise(1.0, 0.01, 300, "add-or-remove").upper_epsilon(1e-5), 2)
        1.07

        Raises:
            PlanError: if `dp-accounting` is not installed.

        """
        by_renyi = self.renyi_epsilon(delta)
        if self.draws > MAX_DRAWS_ABOVE:
            return math.inf if by_renyi is None else by_renyi
        rough = self._rough_epsilon(delta)
        if rough > MAX_ROUGH_EPSILON:
            return math.inf
        # The grid adds about draws * grid^2: 0.1 % of epsilon.
        upper = self._epsilon(delta, math.sqrt(1e-3 * rough / self.draws), is_upper=True)
        return upper if by_renyi is None else min(upper, by_renyi)

    def lower_epsilon(self, delta: float) -> float:
        """Return a lower bound of epsilon: no smaller epsilon holds at this delta.

        It is that of two certain neighbors, with their privacy losses rounded down on a grid.
        Below `LEAST_DELTA` it is 0, as nothing is known.

        >>> 1.0 < PoissonNoise(1.0, 0.01, 300, "add-or-remove").lower_epsilon(1e-5) < 1.068
        True

        Raises:
            PlanError: if `dp-accounting` is not installed.

        """
        if delta < LEAST_DELTA:
            return 0.0
        if self.draws > MAX_DRAWS_BELOW:
            # Fewer draws reveal no more than all of them.
            return replace(self, draws=MAX_DRAWS_BELOW).lower_epsilon(delta)
        rough = self._rough_epsilon(delta)
        if rough > MAX_ROUGH_EPSILON:
            # What holds for more noise holds for less; a huge epsilon needs a huge grid.
            noise = 2 * max(self.noise_multiplier, LEAST_NOISE)
            return replace(self, noise_multiplier=noise).lower_epsilon(delta)
        # Rounding down loses about draws * grid / 2: 5 % of epsilon.
        grid = 0.1 * self.upper_epsilon(delta) / self.draws
        return self._epsilon(delta, max(grid, FINEST_GRID), is_upper=False)

    def deltas(self, epsilons: Sequence[float]) -> tuple[float, ...]:
        """Return an upper bound of delta at each epsilon, for both directions.

        Raises:
            PlanError: if `dp-accounting` is not installed.

        """
        rough = self._rough_epsilon(USUAL_DELTA, FEW_ORDERS)
        grid = math.sqrt(1e-3 * rough / self.draws)
        losses = _composed_losses(self, grid, is_upper=True)
        return tuple(map(float, losses.get_delta_for_epsilon(epsilons)))

    def renyi_epsilon(self, delta: float) -> float | None:
        """Return an upper bound by Renyi divergences; None for a unit that is replaced.

        Raises:
            PlanError: if `dp-accounting` is not installed.

        """
        return None if self.relation == "replace-one" else _renyi_epsilon(self, delta)

    @property
    def noise_per_unit(self) -> float:
        """The noise over the most that one unit adds: replacing one removes and adds one."""
        factor = 2 if self.relation == "replace-one" else 1
        return factor * self.noise_multiplier

    def _rough_epsilon(self, delta: float, orders: tuple[int, ...] | None = None) -> float:
        """Return the size of epsilon, for the choice of a grid; no bound, and above 0."""
        factor = 2 if self.relation == "replace-one" else 1
        return max(factor * _renyi_epsilon(self, delta, orders), 1e-3)

    def _epsilon(self, delta: float, grid: float, *, is_upper: bool) -> float:
        return _loss_epsilon(self, delta, grid, is_upper=is_upper)


@lru_cache(maxsize=256)
def _renyi_epsilon(
    noise: PoissonNoise, delta: float, orders: tuple[int, ...] | None = None
) -> float:
    """Return an upper bound of epsilon if one unit is added or removed.

    Args:
        noise: the noise.
        delta: the delta.
        orders: orders of the divergences; None = all that are usual.

    """
    try:
        from dp_accounting.rdp import compute_epsilon
    except ImportError as missing:
        raise PlanError(INSTALL_HINT) from missing
    tried, of_one_draw = _draw_divergences(noise.rate, noise.noise_per_unit, orders)
    epsilon, _ = compute_epsilon(tried, noise.draws * of_one_draw, delta)
    return float(epsilon)


@lru_cache(maxsize=64)
def _draw_divergences(
    rate: float, noise_per_unit: float, orders: tuple[int, ...] | None
) -> tuple[Float[np.ndarray, " orders"], Float[np.ndarray, " orders"]]:
    """Return the orders, and the Renyi divergences of one draw, nearly all work of an epsilon.

    The divergences of n draws are n times as large.
    """
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(orders)
    with _without_warnings():
        accountant.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(noise_per_unit)))
    return np.asarray(accountant.orders), np.asarray(accountant.rdp)


@lru_cache(maxsize=256)
def _loss_epsilon(noise: PoissonNoise, delta: float, grid: float, *, is_upper: bool) -> float:
    """Return epsilon by the privacy losses on a grid, rounded up or down."""
    losses = _composed_losses(noise, grid, is_upper=is_upper)
    return float(losses.get_epsilon_for_delta(delta))


def _composed_losses(
    noise: PoissonNoise, grid: float, *, is_upper: bool
) -> "PrivacyLossDistribution":
    """Return the privacy losses of all draws on a grid, rounded up or down."""
    deviation, rate = noise.noise_per_unit, noise.rate
    grid = max(min(grid, COARSEST_GRID), largest_loss(deviation, rate) / MAX_GRID_POINTS)
    losses = sampled_losses(deviation, rate, grid, noise.relation, is_upper=is_upper)
    return losses.self_compose(noise.draws)


def sampled_losses(
    deviation: float, rate: float, grid: float, relation: PrivacyRelation, *, is_upper: bool
) -> "PrivacyLossDistribution":
    """Return the privacy losses of a draw of noise on a sum of Poisson samples.

    Args:
        deviation: standard deviation of the noise, over the most that one unit adds.
        rate: probability that a unit is sampled.
        grid: distance between two losses.
        relation: in what neighboring data sets differ.
        is_upper: whether losses are rounded up, for an upper bound, or down.

    """
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    return from_gaussian_mechanism(
        deviation,
        pessimistic_estimate=is_upper,
        value_discretization_interval=grid,
        sampling_prob=rate,
        use_connect_dots=is_upper,
        neighboring_relation=NeighboringRelation.REPLACE_ONE
        if relation == "replace-one"
        else NeighboringRelation.ADD_OR_REMOVE_ONE,
    )


def largest_loss(deviation: float, rate: float) -> float:
    """Return the largest privacy loss of a draw, at ten deviations of the noise."""
    exponent = min(1 / (2 * deviation**2) + 10 / deviation, MAX_EXPONENT)
    return math.log1p(rate * math.expm1(exponent))


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Silence the accountant, which warns of each order of divergence that it leaves out."""
    log = logging.getLogger("absl")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def fixed_size_epsilon(noise_multiplier: float, draws: int, delta: float, rate: float) -> float:
    """Compute an upper bound of epsilon where a fixed share of units is sampled for each draw.

    Neighboring data sets differ by replacing one unit, to which the Gaussian has sensitivity
    1: Wang, Balle and Kasiviswanathan 2019 (AISTATS), Theorem 27, by Renyi divergences. The
    upper bound is not tight: near a rate of 1 it exceeds the epsilon without sampling.

    >>> round(fixed_size_epsilon(2.0, 20, 1e-5, 0.1), 2)
    2.24

    Raises:
        PlanError: if `dp-accounting` is not installed.

    """
    try:
        from dp_accounting import (
            GaussianDpEvent,
            NeighboringRelation,
            SampledWithoutReplacementDpEvent,
        )
        from dp_accounting.rdp import RdpAccountant
    except ImportError as missing:
        raise PlanError(INSTALL_HINT) from missing
    accountant = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    sampled = math.ceil(rate * POPULATION_SIZE)
    event = SampledWithoutReplacementDpEvent(
        POPULATION_SIZE, sampled, GaussianDpEvent(noise_multiplier)
    )
    accountant.compose(event, draws)
    return float(accountant.get_epsilon(delta))
