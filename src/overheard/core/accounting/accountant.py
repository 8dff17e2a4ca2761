"""Privacy accounting: the epsilon of a run with Gaussian noise, from its settings."""

import math
from dataclasses import dataclass, replace
from importlib.util import find_spec

from overheard.core.accounting.sampled_accountant import (
    MAX_DRAWS_ABOVE,
    PoissonNoise,
    fixed_size_epsilon,
)
from overheard.core.defense import RunParameters
from overheard.core.errors import PlanError
from overheard.core.mechanism import (
    INSTALL_HINT,
    MEANINGLESS_EPSILON,
    RECORD_SAMPLINGS,
    ClaimStatus,
    Mechanism,
    RecordSampling,
)

CLOSED_FORM = "dp-accounting, closed form of Balle and Wang 2018"
"""How a promise names the source of `gaussian_epsilon`."""

TOLERANCE = 1e-9
"""An epsilon is rounded up by at most this much."""

MAX_MU = 50.0
"""Ratio of a run's sensitivity to its noise (mu) from which epsilon exceeds 1,000.

Epsilon is about mu^2 / 2 + mu * Phi^-1(1 - delta): over 1,000 even at delta = 0.999. The digits
of such an epsilon have no meaning."""

ROUNDING_TOLERANCE = 0.01
"""How far a stated epsilon may lie on the wrong side of a bound, because of rounding: this
much, and at most this share of the bound."""


@dataclass(frozen=True, slots=True)
class RecomputedEpsilon:
    """Bounds of epsilon, recomputed from a mechanism's settings.

    Sampling of records inside a client counts in all of them; nobody but the client knows it.

    Args:
        pld: upper bound for the run without amplification by sampling clients, by the
            distribution of the privacy loss: in closed form as `gaussian_epsilon`, or of
            Poisson samples. Batches of a fixed size count without amplification here, and
            shuffled ones as one draw an epoch.
        rdp: the same by Renyi divergences (Mironov 2017, CSF), as a check; `pld` is tighter,
            so `rdp` is never much below it, but for batches of a fixed size. None = no such
            bound is known.
        subsampled: upper bound for the run with amplification by sampling clients; None where
            sampling does not count or does not lower epsilon.
        one_round: the smaller one of `pld` and `rdp`, for a single round.
        lower: lower bound for the run: no smaller epsilon is true; 0 = none is known.
        one_round_lower: lower bound for a single round.

    """

    pld: float
    rdp: float | None
    subsampled: float | None
    one_round: float
    lower: float = 0.0
    one_round_lower: float = 0.0

    @property
    def against_everybody(self) -> float:
        """The smallest upper bound for the run against those who know the sampled clients."""
        return self.pld if self.rdp is None else min(self.pld, self.rdp)

    @property
    def smallest(self) -> float:
        """The smallest upper bound for the run."""
        found = self.against_everybody
        return found if self.subsampled is None else min(found, self.subsampled)


@dataclass(frozen=True, slots=True)
class AccountedMechanism:
    """A mechanism in a run, with its recomputed epsilon.

    Args:
        mechanism: as the defense states it.
        run: over which it is composed.
        recomputed: None where no accounting covers it, or `dp-accounting` is not installed.
        gap: why epsilon is infinite although the mechanism adds noise, such as a client that
            does not state it; "" = no such reason.

    """

    mechanism: Mechanism
    run: RunParameters
    recomputed: RecomputedEpsilon | None
    gap: str = ""

    @property
    def claim(self) -> ClaimStatus:
        """Whether the stated epsilon is true for the stated settings."""
        stated, found = self.mechanism.stated, self.recomputed
        if stated is None:
            return "not stated"
        if self.mechanism.flaw:
            return "false"
        if found is None:
            return "not confirmed"
        lower, upper = found.lower, found.smallest
        if self.mechanism.stated_for == "round":
            lower, upper = found.one_round_lower, found.one_round
        elif self.run.is_open:
            upper = math.inf
        if stated < lower - _tolerance(lower):
            return "false"
        return "holds" if stated >= upper - _tolerance(upper) else "not confirmed"

    @property
    def doubt(self) -> str:
        """Why epsilon was not recomputed, or why no claim below it can be called false.

        "" = its bounds are close to each other.
        """
        mechanism, run = self.mechanism, self.run
        if self.recomputed is None:
            return why_not_accounted(mechanism, run) or INSTALL_HINT
        is_of_run = mechanism.stated_for == "run"
        if run.is_open and is_of_run:
            return (
                f"the recording has {run.rounds:,} rounds and no mark of its end, and does not "
                "state how many rounds were planned"
            )
        if doubt := self.gap or _sampling_doubt(mechanism, run):
            return doubt
        if not mechanism.is_relation_stated:
            return (
                "whether it is for a unit that is replaced, or added or removed, is not stated"
            )
        if run.recorded is not None and is_of_run:
            return f"{run.rounds_text}: epsilon is that of all {run.rounds:,} planned rounds"
        return ""


def _sampling_doubt(mechanism: Mechanism, run: RunParameters) -> str:
    """Return why sampling leaves no lower bound of epsilon; "" = it leaves one."""
    sampling = mechanism.record_sampling
    if mechanism.unit == "record" and sampling is None:
        return "how the records of each step are sampled is not stated (record_sampling)"
    if sampling is not None and sampling in LOOSE_SAMPLINGS:
        return f"no lower bound is known for {RECORD_SAMPLINGS[sampling]}"
    if not run.samples_clients or _is_sampling_bounded(mechanism, run):
        return ""
    if run.sampling is None:
        return "how the clients of a round are sampled is not stated (sampling)"
    return "no lower bound is known for this sampling of clients"


LOOSE_SAMPLINGS: tuple[RecordSampling, ...] = ("fixed", "shuffled")
"""The samplings of records for which no lower bound of epsilon is computed."""


def _tolerance(bound: float) -> float:
    return ROUNDING_TOLERANCE * min(bound, 1.0)


def account_mechanism(mechanism: Mechanism, run: RunParameters) -> AccountedMechanism:
    """Recompute the epsilon of a mechanism from its settings alone.

    The sensitivity is `moves * clip`; noise is drawn `rounds * steps` times. A flaw of the
    mechanism is ignored: the result is what its noise would guarantee without the flaw.
    Amplification by sampling clients is for one draw a round, as `Mechanism` requires.
    """
    if not is_accountant_installed() or why_not_accounted(mechanism, run):
        return AccountedMechanism(mechanism, run, None)
    pld, rdp = _upper_epsilons(mechanism, run.rounds)
    one_round_pld, one_round_rdp = _upper_epsilons(mechanism, 1)
    sampled = _client_sampled_epsilon(mechanism, run)
    found = RecomputedEpsilon(
        pld,
        rdp,
        None,
        one_round_pld if one_round_rdp is None else min(one_round_pld, one_round_rdp),
    )
    if sampled < found.against_everybody:
        found = replace(found, subsampled=sampled)
    if mechanism.stated is not None:
        found = replace(
            found,
            lower=_lower_epsilon(
                mechanism, run, run.rounds if run.asked is None else run.asked
            ),
            one_round_lower=_lower_epsilon(mechanism, run, 1),
        )
    return AccountedMechanism(mechanism, run, found)


def why_not_accounted(mechanism: Mechanism, run: RunParameters) -> str:
    """Return why no accounting covers a mechanism; "" = one does."""
    if mechanism.unproven:
        return mechanism.unproven
    is_removed = mechanism.relation == "add-or-remove"
    if is_removed and mechanism.record_sampling == "fixed":
        return (
            "batches of a fixed size are accounted for only if a record is replaced by another "
            "one: state moves = 2, and the epsilon of that relation"
        )
    if _counts_on_sampling(mechanism, run):
        if is_removed and run.sampling == "fixed":
            return (
                "a fixed number of sampled clients is accounted for only if a client is "
                "replaced by another one: state moves = 2, and the epsilon of that relation"
            )
        if run.sampling == "with_replacement":
            return "no accounting covers clients that are sampled with replacement"
    return ""


def _counts_on_sampling(mechanism: Mechanism, run: RunParameters) -> bool:
    return mechanism.is_drawn and run.samples_clients


def _upper_epsilons(mechanism: Mechanism, rounds: int) -> tuple[float, float | None]:
    """Return the bounds by PLD and by Renyi divergences, without sampling of clients."""
    noise, delta = _noise(mechanism), mechanism.delta
    draws = rounds * mechanism.steps
    rate = mechanism.record_rate
    if draws == 0:
        return 0.0, 0.0
    if noise < LEAST_NOISE:
        return math.inf, math.inf
    if rate is None or rate == 1:
        return gaussian_epsilon(noise, draws, delta), renyi_epsilon(noise, draws, delta)
    match mechanism.record_sampling:
        case "poisson":
            sampled = PoissonNoise(noise, rate, draws, mechanism.relation)
            return _poisson_epsilon(sampled, delta), sampled.renyi_epsilon(delta)
        case "fixed":
            return (
                gaussian_epsilon(noise, draws, delta),
                fixed_size_epsilon(noise, draws, delta, rate),
            )
        case _:
            # Shuffled: each record occurs once an epoch, in a batch that anybody may know.
            batches = math.ceil(1 / rate - RATE_ROUNDING)
            epochs = rounds * math.ceil(mechanism.steps / batches)
            return gaussian_epsilon(noise, epochs, delta), renyi_epsilon(noise, epochs, delta)


def _poisson_epsilon(sampled: PoissonNoise, delta: float) -> float:
    """Return an upper bound; that without sampling where the draws are too many for others."""
    if sampled.draws > MAX_DRAWS_ABOVE and sampled.relation == "replace-one":
        return gaussian_epsilon(sampled.noise_multiplier, sampled.draws, delta)
    return sampled.upper_epsilon(delta)


def _noise(mechanism: Mechanism) -> float:
    """Return the deviation of the noise over the sensitivity, at most `MOST_NOISE`."""
    return min(mechanism.noise_multiplier / mechanism.moves, MOST_NOISE)


LEAST_NOISE = 1e-10
"""Noise over the sensitivity below which no upper bound of epsilon is computed."""

MOST_NOISE = 1e10
"""Noise over the sensitivity above which epsilon has no meaning."""

RATE_ROUNDING = 1e-6
"""How much 1 / rate may exceed a whole number of batches because a rate was rounded."""


def _client_sampled_epsilon(mechanism: Mechanism, run: RunParameters) -> float:
    """Return an upper bound that counts on the sampling of clients; infinite if none does."""
    noise, rate = _noise(mechanism), run.sampling_rate
    if not _counts_on_sampling(mechanism, run) or rate >= 1 or noise < LEAST_NOISE:
        return math.inf
    if run.rounds == 0:
        return 0.0
    if run.sampling == "poisson":
        sampled = PoissonNoise(noise, rate, run.rounds, mechanism.relation)
        return _poisson_epsilon(sampled, mechanism.delta)
    if run.sampling == "fixed":
        return fixed_size_epsilon(noise, run.rounds, mechanism.delta, rate)
    return math.inf


def _is_sampling_bounded(mechanism: Mechanism, run: RunParameters) -> bool:
    """Return whether a lower bound is known for the sampling of clients."""
    is_once = mechanism.unit == "client" and mechanism.steps == 1
    return run.sampling == "poisson" and is_once


def _lower_epsilon(mechanism: Mechanism, run: RunParameters, rounds: int) -> float:
    """Return a lower bound of the true epsilon of these rounds; 0 if none is known.

    A claim may count on any sampling that the mechanism has, so the bound counts on all of it.
    If its relation is not known, it may be for a unit that is added or removed.
    """
    if mechanism.relation == "replace-one" and not mechanism.is_relation_stated:
        mechanism = replace(mechanism, moves=mechanism.moves / 2)
    noise, delta = _noise(mechanism), mechanism.delta
    draws = rounds * mechanism.steps
    if draws == 0 or noise == 0:
        return math.inf if draws else 0.0
    noise = max(noise, LEAST_NOISE)  # what holds for less noise holds for more
    if run.samples_clients:
        if not _is_sampling_bounded(mechanism, run):
            return 0.0
        return PoissonNoise(noise, run.participation, draws, mechanism.relation).lower_epsilon(
            delta
        )
    if mechanism.unit == "record":
        if mechanism.record_sampling in (None, *LOOSE_SAMPLINGS):
            return 0.0
        rate = mechanism.record_rate
        if rate is not None and rate < 1:
            return PoissonNoise(noise, rate, draws, mechanism.relation).lower_epsilon(delta)
    exact = gaussian_epsilon(noise, draws, delta) - TOLERANCE
    return min(exact, LARGEST_CERTAIN)


LARGEST_CERTAIN = 1000.0
"""Epsilon that is exceeded wherever `gaussian_epsilon` is infinite."""


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


def format_epsilon(epsilon: float) -> str:
    """Format an epsilon, rounded up so that the guarantee is never overstated.

    >>> format_epsilon(1.001), format_epsilon(5e6)
    ('1.01', 'above 1000 (no protection)')
    """
    figure = "above 1000" if epsilon > 1000 else f"{math.ceil(epsilon * 100) / 100:.2f}"
    return f"{figure} (no protection)" if epsilon > MEANINGLESS_EPSILON else figure
