"""The epsilon of a run in which a Gaussian falls on what depends on a client or a record."""

import math
from dataclasses import dataclass
from importlib.util import find_spec

from overheard.core.defense import Run
from overheard.core.errors import PlanError
from overheard.core.mechanism import Mechanism

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

MISSING = "an epsilon takes dp-accounting: pip install 'overheard[dp]'"
"""What to do where none can be reckoned."""


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What a mechanism's settings come to, whatever is stated of it; all are upper bounds.

    Args:
        pld: over the run without counting on a draw of clients, by privacy loss distributions
            (Doroshenko et al. 2022, PoPETs); infinite without noise or beyond `HOPELESS`.
        rdp: the same by Renyi divergences (Mironov 2017, CSF), as a check: never much below
            `pld`, which is the tighter of the two.
        drawn: over the run, counting on the draw of clients, by `sampled_epsilon`; None where
            it does not count, or does not help.
        one_round: as `pld`, of a single round.

    """

    pld: float
    rdp: float
    drawn: float | None
    one_round: float


@dataclass(frozen=True, slots=True)
class Accounted:
    """A mechanism in a run, and what it comes to.

    Args:
        mechanism: as the defense states it.
        run: over which it is composed.
        recomputed: None where `dp-accounting` is not installed.

    """

    mechanism: Mechanism
    run: Run
    recomputed: Recomputed | None


def account(mechanism: Mechanism, run: Run) -> Accounted:
    """Recompute the epsilon of a mechanism from its settings alone.

    Sensitivity `moves * clip`, `rounds * steps` draws of noise. Of a mechanism with a flaw it
    tells what its noise would come to were the flaw mended.
    """
    if not is_installed():
        return Accounted(mechanism, run, None)
    noise, delta = mechanism.noise_multiplier / mechanism.moves, mechanism.delta
    draws = run.rounds * mechanism.steps
    pld, drawn = gaussian_epsilon(noise, draws, delta), math.inf
    if mechanism.is_drawn and run.sampling_rate < 1 and noise > 0:
        drawn = sampled_epsilon(noise, draws, delta, run.sampling_rate)
    return Accounted(
        mechanism,
        run,
        Recomputed(
            pld,
            renyi_epsilon(noise, draws, delta),
            drawn if drawn < pld else None,
            gaussian_epsilon(noise, mechanism.steps, delta),
        ),
    )


def is_installed() -> bool:
    """Whether there is an accountant: it comes with the extra `dp`."""
    return find_spec("dp_accounting") is not None


def gaussian_epsilon(noise_multiplier: float, rounds: int, delta: float) -> float:
    """The epsilon of a Gaussian mechanism of sensitivity 1 composed over rounds, no sampling.

    By privacy loss distributions, rounded pessimistically; infinity without noise and beyond
    `HOPELESS`.

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
    spread = _spread(noise_multiplier, rounds)
    if spread >= HOPELESS:
        return math.inf
    accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, GRID * max(1.0, spread))
    accountant.compose(GaussianDpEvent(noise_multiplier), rounds)
    return float(accountant.get_epsilon(delta))


def renyi_epsilon(noise_multiplier: float, rounds: int, delta: float) -> float:
    """The same as `gaussian_epsilon` by Renyi divergences: looser, and reckoned another way.

    >>> round(renyi_epsilon(1.0, 1, 1e-5), 2)
    4.73

    Raises:
        PlanError: if `dp-accounting` is not installed.

    """
    try:
        from dp_accounting import GaussianDpEvent
        from dp_accounting.rdp import RdpAccountant
    except ImportError as missing:
        raise PlanError(MISSING) from missing
    if _spread(noise_multiplier, rounds) >= HOPELESS:
        return math.inf
    accountant = RdpAccountant()
    accountant.compose(GaussianDpEvent(noise_multiplier), rounds)
    return float(accountant.get_epsilon(delta))


def _spread(noise_multiplier: float, rounds: int) -> float:
    """The ratio of a run's sensitivity to its noise (mu)."""
    return math.sqrt(rounds) / noise_multiplier if noise_multiplier else math.inf


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
