"""Trade-off curves: how well the best test of one canary can do under a mechanism."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import exp
from typing import Protocol

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

from overheard.core.accounting.accountant import MAX_MU, gaussian_epsilon
from overheard.core.accounting.sampled_accountant import PoissonNoise

InversePower = Callable[[float], float]
"""The least false positive rate of a test with this true positive rate, both 0..1.

It is F^-1 of Mahloujifar et al. 2024, where F = 1 - f and f is the trade-off curve. The curve
is symmetric: it holds for both directions, such as adding and removing a record."""


class CurveFamily(Protocol):
    """Mechanisms that differ in one number, of which a claim is one."""

    @property
    def first(self) -> float:
        """The strength to begin a search with."""

    @property
    def largest(self) -> float:
        """The largest strength that is computed."""

    @property
    def resolution(self) -> float:
        """To which share of it a strength is found."""

    def inverse_power(self, strength: float) -> InversePower:
        """Return the curve of a mechanism; a larger strength reveals more."""

    def epsilon(self, strength: float, delta: float) -> float:
        """Return its epsilon at this delta."""


@dataclass(frozen=True, slots=True)
class GaussianFamily:
    """Gaussian mechanisms without sampling; their strength is mu.

    Mu is the sensitivity over the deviation of the noise, times the root of the draws.
    """

    @property
    def first(self) -> float:
        """A mu of 1."""
        return 1.0

    @property
    def largest(self) -> float:
        """The largest mu of which an epsilon is computed."""
        return MAX_MU

    @property
    def resolution(self) -> float:
        """Fine, as a curve in closed form costs nothing."""
        return 1e-6

    def inverse_power(self, strength: float) -> InversePower:
        """Return the curve, in closed form."""
        return lambda found: float(ndtr(ndtri(found) - strength))

    def epsilon(self, strength: float, delta: float) -> float:
        """Return epsilon in closed form."""
        return gaussian_epsilon(1 / strength, 1, delta)


@dataclass(frozen=True, slots=True)
class SampledFamily:
    """Gaussian noise on Poisson samples; the strength is the inverse noise multiplier.

    Args:
        noise: the mechanism of the claim; others differ in the noise alone.

    """

    noise: PoissonNoise

    @property
    def first(self) -> float:
        """The claimed strength."""
        return 1 / self.noise.noise_multiplier

    @property
    def largest(self) -> float:
        """The strength with an eighth of the claimed noise; losses of more take minutes."""
        return 8 / self.noise.noise_multiplier

    @property
    def resolution(self) -> float:
        """Coarse, as the privacy losses of each strength take a tenth of a second."""
        return 0.01

    def inverse_power(self, strength: float) -> InversePower:
        """Return the curve by the privacy losses, rounded up.

        Adding a record and removing it have different curves. This one is the lower convex
        envelope of both and of their inverses: it takes the larger delta at each epsilon.
        """
        epsilons, deltas = _loss_profile(self._with(strength))
        return inverse_power_of_profile(epsilons, deltas)

    def epsilon(self, strength: float, delta: float) -> float:
        """Return an upper bound of epsilon by the privacy losses."""
        return self._with(strength).upper_epsilon(delta)

    def _with(self, strength: float) -> PoissonNoise:
        noise = self.noise
        return PoissonNoise(1 / strength, noise.rate, noise.draws, noise.relation)


PROFILE_POINTS = 120
"""Points of epsilon at which the delta of sampled noise is computed. Fewer give a lower curve,
which is refuted less often."""

LARGEST_LOSS = 40.0
"""The largest epsilon of those points: e^-40 is below any rate that canaries show."""


@lru_cache(maxsize=128)
def _loss_profile(
    noise: PoissonNoise,
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, " points"]]:
    epsilons = np.concatenate([[0.0], np.geomspace(1e-3, LARGEST_LOSS, PROFILE_POINTS - 1)])
    return epsilons, np.array(noise.deltas(epsilons.tolist()))


def inverse_power_of_profile(
    epsilons: Float[np.ndarray, " points"], deltas: Float[np.ndarray, " points"]
) -> InversePower:
    """Return the curve of all mechanisms that are (epsilon, delta)-private at each point.

    >>> round(inverse_power_of_profile(np.array([1.0]), np.array([0.0]))(0.5), 4)  # e^-1 / 2
    0.1839

    Args:
        epsilons: 0 or more.
        deltas: the delta at each.

    """
    growth = np.exp(epsilons)

    def inverse(found: float) -> float:
        by_small = (found - deltas) / growth
        by_large = 1 - deltas - growth * (1 - found)
        return max(0.0, float(by_small.max()), float(by_large.max()))

    return inverse


def repeated(curve: InversePower, times: int) -> InversePower:
    """Return the curve of neighbors that are `times` steps of the claimed relation apart.

    A Gaussian with mu becomes one with `times` mu.
    """

    def inverse(found: float) -> float:
        for _ in range(times):
            found = curve(found)
        return found

    return inverse


def repeated_pair(epsilon: float, delta: float, times: int) -> tuple[float, float]:
    """Return the epsilon and delta of neighbors that are `times` steps apart.

    >>> repeated_pair(0.0, 0.01, 2)
    (0.0, 0.02)
    """
    steps = range(times)
    return times * epsilon, min(sum(exp(one * epsilon) for one in steps) * delta, 1.0)
