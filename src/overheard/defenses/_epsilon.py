"""The epsilon of a run in which a Gaussian falls on what depends on a client."""

import math

from overheard.core.errors import PlanError

GRID = 1e-4
"""Spacing of the accountant's privacy losses, in nats, where they spread over 1 or less."""

HOPELESS = 50.0
"""Ratio of a run's sensitivity to its noise (mu) from which epsilon exceeds 1,000.

At mu epsilon is about mu^2 / 2 + mu * Phi^-1(1 - delta): over 1,000 even at delta = 0.999.
Nothing is told by the digits of such an epsilon, and an accountant takes minutes for them."""

DRAWN_FROM = 10**6
"""Of how many the accountant is told that a sample is drawn: only the ratio counts."""

HOLLOW = 50.0
"""Epsilon from which nobody is protected: one client may change odds by a factor of e^50."""

MISSING = "a defense needs dp-accounting to state its epsilon: pip install overheard[dp]"


def gaussian_epsilon(noise_multiplier: float, rounds: int, delta: float) -> float:
    """The epsilon of a Gaussian mechanism of sensitivity 1 composed over rounds, no sampling.

    By privacy loss distributions, rounded pessimistically; infinity beyond `HOPELESS`.

    >>> round(gaussian_epsilon(1.0, 1, 1e-5), 2)
    4.38

    Raises:
        PlanError: if `dp-accounting` is not installed.

    """
    try:
        from dp_accounting import GaussianDpEvent, NeighboringRelation
        from dp_accounting.pld import PLDAccountant
    except ImportError as missing:
        raise PlanError(MISSING) from missing
    spread = math.sqrt(rounds) / noise_multiplier
    if spread >= HOPELESS:
        return math.inf
    accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, GRID * max(1.0, spread))
    accountant.compose(GaussianDpEvent(noise_multiplier), rounds)
    return float(accountant.get_epsilon(delta))


def sampled_epsilon(noise_multiplier: float, rounds: int, delta: float, rate: float) -> float:
    """The same where a fixed share of the clients is drawn each round, and nobody knows whom.

    For one client replaced by another, and a Gaussian of sensitivity 1 to that: Wang, Balle and
    Kasiviswanathan 2019 (AISTATS), Theorem 27, by Renyi divergences. It is an upper bound, and
    not a tight one: near a rate of 1 it exceeds what holds without sampling.

    >>> round(sampled_epsilon(2.0, 20, 1e-5, 0.1), 2)
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
        raise PlanError(MISSING) from missing
    accountant = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    drawn = math.ceil(rate * DRAWN_FROM)
    event = SampledWithoutReplacementDpEvent(
        DRAWN_FROM, drawn, GaussianDpEvent(noise_multiplier)
    )
    accountant.compose(event, rounds)
    return float(accountant.get_epsilon(delta))


def told(epsilon: float) -> str:
    """Rounded up, so that the promise is never better than what was computed.

    >>> told(1.001), told(5e6)
    ('1.01', 'above 1000 (no protection)')
    """
    figure = "above 1000" if epsilon > 1000 else f"{math.ceil(epsilon * 100) / 100:.2f}"
    return f"{figure} (no protection)" if epsilon > HOLLOW else figure
