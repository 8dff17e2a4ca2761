"""Privacy accounting: the epsilon of a run with Gaussian noise, from its settings."""

import math
from dataclasses import dataclass
from importlib.util import find_spec

from overheard.core.defense import RunParameters
from overheard.core.errors import PlanError
from overheard.core.mechanism import INSTALL_HINT, MEANINGLESS_EPSILON, Mechanism

CLOSED_FORM = "dp-accounting, closed form of Balle and Wang 2018"
"""How a promise names the source of `gaussian_epsilon`."""

TOLERANCE = 1e-9
"""An epsilon is rounded up by at most this much."""

MAX_MU = 50.0
"""Ratio of a run's sensitivity to its noise (mu) from which epsilon exceeds 1,000.

Epsilon is about mu^2 / 2 + mu * Phi^-1(1 - delta): over 1,000 even at delta = 0.999. The digits
of such an epsilon have no meaning."""

POPULATION_SIZE = 10**6
"""Population size given to the accountant for sampling; only the sampling rate matters."""


@dataclass(frozen=True, slots=True)
class RecomputedEpsilon:
    """Upper bounds of epsilon, recomputed from a mechanism's settings.

    Args:
        pld: epsilon of the run without amplification by sampling, by the distribution of the
            Gaussian's privacy loss, as `gaussian_epsilon`.
        rdp: the same by Renyi divergences (Mironov 2017, CSF), as a check; `pld` is tighter,
            so `rdp` is never much below it.
        subsampled: epsilon of the run with amplification by sampling clients, by
            `sampled_epsilon`; None where sampling does not count or does not lower epsilon.
        one_round: as `pld`, for a single round.

    """

    pld: float
    rdp: float
    subsampled: float | None
    one_round: float


@dataclass(frozen=True, slots=True)
class AccountedMechanism:
    """A mechanism in a run, with its recomputed epsilon.

    Args:
        mechanism: as the defense states it.
        run: over which it is composed.
        recomputed: None where `dp-accounting` is not installed.

    """

    mechanism: Mechanism
    run: RunParameters
    recomputed: RecomputedEpsilon | None


def account_mechanism(mechanism: Mechanism, run: RunParameters) -> AccountedMechanism:
    """Recompute the epsilon of a mechanism from its settings alone.

    The sensitivity is `moves * clip`; noise is drawn `rounds * steps` times. A flaw of the
    mechanism is ignored: the result is what its noise would guarantee without the flaw.
    Amplification by sampling is for one draw a round, as `Mechanism` requires.
    """
    if not is_accountant_installed():
        return AccountedMechanism(mechanism, run, None)
    noise, delta = mechanism.noise_multiplier / mechanism.moves, mechanism.delta
    draws = run.rounds * mechanism.steps
    pld, with_sampling = gaussian_epsilon(noise, draws, delta), math.inf
    if mechanism.is_drawn and run.sampling_rate < 1 and noise > 0:
        with_sampling = sampled_epsilon(noise, run.rounds, delta, run.sampling_rate)
    return AccountedMechanism(
        mechanism,
        run,
        RecomputedEpsilon(
            pld,
            renyi_epsilon(noise, draws, delta),
            with_sampling if with_sampling < pld else None,
            gaussian_epsilon(noise, mechanism.steps, delta),
        ),
    )


def is_accountant_installed() -> bool:
    """Return whether the accountant is installed; the extra `dp` installs it."""
    return find_spec("dp_accounting") is not None


def gaussian_epsilon(noise_multiplier: float, rounds: int, delta: float) -> float:
    """Compute the epsilon of a Gaussian mechanism of sensitivity 1 over rounds, no sampling.

    Several Gaussian mechanisms are one with less noise, whose privacy loss distribution is
    known in closed form (Balle and Wang 2018, ICML, Theorem 8). It is rounded up. Returns
    infinity without noise and above `MAX_MU`.

    >>> round(gaussian_epsilon(1.0, 1, 1e-5), 2)
    4.38

    Raises:
        PlanError: if `dp-accounting` is not installed.

    """
    try:
        import dp_accounting.pld.privacy_loss_mechanism
    except ImportError as missing:
        raise PlanError(INSTALL_HINT) from missing
    mu = _mu(noise_multiplier, rounds)
    if mu >= MAX_MU:
        return math.inf
    loss = dp_accounting.pld.privacy_loss_mechanism.GaussianPrivacyLoss(1 / mu)

    def excess(epsilon: float) -> float:
        return float(loss.get_delta_for_epsilon(epsilon)) - delta

    if excess(0.0) <= 0:
        return 0.0
    above = 1.0
    while excess(above) > 0:
        above *= 2
    from scipy.optimize import brentq

    return float(brentq(excess, 0.0, above, xtol=TOLERANCE / 4)) + TOLERANCE / 2


def renyi_epsilon(noise_multiplier: float, rounds: int, delta: float) -> float:
    """Compute the same as `gaussian_epsilon` by Renyi divergences, which is looser.

    >>> round(renyi_epsilon(1.0, 1, 1e-5), 2)
    4.73

    Raises:
        PlanError: if `dp-accounting` is not installed.

    """
    try:
        from dp_accounting import GaussianDpEvent
        from dp_accounting.rdp import RdpAccountant
    except ImportError as missing:
        raise PlanError(INSTALL_HINT) from missing
    if _mu(noise_multiplier, rounds) >= MAX_MU:
        return math.inf
    accountant = RdpAccountant()
    accountant.compose(GaussianDpEvent(noise_multiplier), rounds)
    return float(accountant.get_epsilon(delta))


def _mu(noise_multiplier: float, rounds: int) -> float:
    """Return the ratio of a run's sensitivity to its noise (mu)."""
    return math.sqrt(rounds) / noise_multiplier if noise_multiplier else math.inf


def sampled_epsilon(noise_multiplier: float, rounds: int, delta: float, rate: float) -> float:
    """Compute the same where a fixed share of clients is sampled secretly in each round.

    Neighboring data sets differ by replacing one client, to which the Gaussian has sensitivity
    1: Wang, Balle and Kasiviswanathan 2019 (AISTATS), Theorem 27, by Renyi divergences. The
    upper bound is not tight: near a rate of 1 it exceeds the epsilon without sampling.

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
        raise PlanError(INSTALL_HINT) from missing
    accountant = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    sampled = math.ceil(rate * POPULATION_SIZE)
    event = SampledWithoutReplacementDpEvent(
        POPULATION_SIZE, sampled, GaussianDpEvent(noise_multiplier)
    )
    accountant.compose(event, rounds)
    return float(accountant.get_epsilon(delta))


def format_epsilon(epsilon: float) -> str:
    """Format an epsilon, rounded up so that the guarantee is never overstated.

    >>> format_epsilon(1.001), format_epsilon(5e6)
    ('1.01', 'above 1000 (no protection)')
    """
    figure = "above 1000" if epsilon > 1000 else f"{math.ceil(epsilon * 100) / 100:.2f}"
    return f"{figure} (no protection)" if epsilon > MEANINGLESS_EPSILON else figure
