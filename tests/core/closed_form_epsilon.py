"""The exact epsilon of a Gaussian mechanism, in closed form, as a reference for accountants."""

import math

from scipy.optimize import brentq
from scipy.stats import norm


def closed_epsilon(mu: float, delta: float) -> float:
    """Solve delta = Phi(-e/mu + mu/2) - exp(e) Phi(-e/mu - mu/2) (Dong, Roth and Su 2022)."""

    def excess(epsilon: float) -> float:
        tail = math.exp(epsilon + norm.logcdf(-epsilon / mu - mu / 2))
        return float(norm.cdf(-epsilon / mu + mu / 2) - tail - delta)

    return float(brentq(excess, 0, mu * mu + 20 * mu))
