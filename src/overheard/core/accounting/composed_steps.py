"""Epsilon of steps of DP-SGD that differ, for one record of a client or for several."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Literal, final

from annotated_types import Ge, Lt

from overheard.core.accounting.accountant import (
    LEAST_NOISE,
    MAX_MU,
    MOST_NOISE,
    RATE_ROUNDING,
    gaussian_epsilon,
)
from overheard.core.accounting.sampled_accountant import (
    COARSEST_GRID,
    FINEST_GRID,
    MAX_DRAWS_ABOVE,
    MAX_GRID_POINTS,
    MAX_ROUGH_EPSILON,
    PoissonNoise,
    largest_loss,
    sampled_losses,
)
from overheard.core.errors import PlanError
from overheard.core.mechanism import INSTALL_HINT, MEANINGLESS_EPSILON
from overheard.core.settings import Positive, PositiveShare, Settings

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

StepSampling = Literal["none", "poisson", "shuffled"]
"""How the records of a step are sampled, of the ways that are accounted for if a record is
added or removed: see `core.mechanism.RecordSampling`."""

NEGLIGIBLE_MASS = 1e-23
"""Probability of more sampled records of a group than are computed. The accountant counts
tails of this size as infinite losses, so the bound still holds."""

MAX_GROUP_GRID_POINTS = 5_000
"""Most privacy losses of a step for several records: each is inverted numerically."""

MOST_GROUP_NOISE = 1e4
"""Most noise beside which sampling counts for several records: beside more, losses are too
small to be inverted, and epsilon without sampling is small too."""

LEAST_RATE = 1e-9
"""Rate below which a smaller one makes no difference that is shown."""

MAX_SAMPLED_COUNTS = 1000
"""Most numbers of sampled records of a group for which sampling counts."""


@final
@dataclass(frozen=True, slots=True)
class NoisySteps(Settings):
    """Equal steps of DP-SGD in one message of a client.

    Args:
        noise_multiplier: standard deviation of the noise, in units of the clip; 0 = no noise.
        sampling: how the records of each step are sampled.
        rate: share of the client's records in a step; 1 without sampling.
        steps: number of steps.

    """

    noise_multiplier: Annotated[float, Ge(0), Lt(math.inf)]
    sampling: StepSampling
    rate: PositiveShare
    steps: Positive

    @property
    def counts_sampling(self) -> bool:
        """Whether epsilon is smaller because nobody knows which records a step has."""
        return self.sampling == "poisson" and self.rate < 1

    @property
    def occurrences(self) -> int:
        """The most steps that a record is in, if the sampling does not count."""
        if self.sampling != "shuffled":
            return self.steps
        return math.ceil(self.steps / math.ceil(1 / self.believed_rate - RATE_ROUNDING))

    @property
    def believed_noise(self) -> float:
        """The noise multiplier, or the most that accounting counts on."""
        return min(self.noise_multiplier, MOST_NOISE)

    @property
    def believed_rate(self) -> float:
        """The rate, or the least that accounting counts on."""
        return max(self.rate, LEAST_RATE)


def steps_epsilon(spent: Iterable[NoisySteps], delta: float, records: int = 1) -> float:
    """Compute an upper bound of epsilon for records of a client that are added or removed.

    Steps may differ in noise, rate and sampling: their privacy losses (PLD) are composed. For
    several records, such as all of a user, the sum of a step differs by as many clips as it has
    sampled records of them. With Poisson sampling their number is binomial, so the losses are
    those of a mixture of Gaussians (Ganesh 2024, arXiv 2401.10294, "Tight Group-Level DP
    Guarantees for DP-SGD with Sampling via Mixture of Gaussians Mechanisms"). Otherwise all of
    them may be in the same step. Infinite without noise and above some 1,000.

    >>> day = NoisySteps(1.0, "poisson", 1 / 125, 125)
    >>> round(steps_epsilon([day] * 20, 1e-5), 2)
    2.27
    >>> round(steps_epsilon([day] * 20, 1e-5, records=2), 1)
    5.0

    Args:
        spent: all steps of a client; () = it sent nothing, so its epsilon is 0.
        delta: the delta of the guarantee, above 0 and below 1.
        records: how many records are added or removed together.

    Raises:
        ValueError: if delta is not between 0 and 1, or there is no record.
        PlanError: if `dp-accounting` is not installed.

    """
    if not 0 < delta < 1 or records < 1:
        raise ValueError(
            f"delta must lie above 0 and below 1, and records be 1 or more, got {delta!r} and "
            f"{records!r}"
        )
    steps = tuple(spent)
    if not steps:
        return 0.0
    if min(one.noise_multiplier for one in steps) < LEAST_NOISE:
        return math.inf
    sampled = Counter[tuple[float, float]]()
    for one in steps:
        if one.counts_sampling:
            sampled[one.believed_noise, one.believed_rate] += one.steps
    whole = _squares(one for one in steps if not one.counts_sampling) * records**2
    unsampled = gaussian_epsilon(1 / (math.sqrt(_squares(steps)) * records), 1, delta)
    if not sampled:
        return unsampled
    if len(sampled) == 1 and records == 1 and not whole:
        ((noise, rate), draws) = next(iter(sampled.items()))
        return PoissonNoise(noise, rate, draws, "add-or-remove").upper_epsilon(delta)
    if not _is_composable(sampled, whole, records, delta):
        return unsampled
    composed = _composed_epsilon(tuple(sorted(sampled.items())), whole, records, delta)
    return min(composed, unsampled)


def _is_composable(
    sampled: Counter[tuple[float, float]], whole: float, records: int, delta: float
) -> bool:
    """Return whether epsilon that counts on sampling is computed, in seconds and with meaning.

    Args:
        sampled: number of steps by noise and rate of Poisson samples.
        whole: square of the sensitivity over the noise of all other steps together.
        records: how many records are added or removed together.
        delta: the delta of the guarantee.

    """
    # The mean of what a group adds to a sum: where it is this large, digits have no meaning.
    shift = sum(n * (records * rate / noise) ** 2 for (noise, rate), n in sampled.items())
    if shift + whole >= MAX_MU**2 or sampled.total() > MAX_DRAWS_ABOVE:
        return False
    for (noise, rate), draws in sampled.items():
        of_one = PoissonNoise(noise, rate, draws, "add-or-remove").renyi_epsilon(delta)
        is_wide = records > 1 and (
            noise > MOST_GROUP_NOISE or len(_sampled_counts(records, rate)) > MAX_SAMPLED_COUNTS
        )
        if is_wide or of_one is None or of_one > MAX_ROUGH_EPSILON:
            return False
    return True


def _squares(steps: Iterable[NoisySteps]) -> float:
    """Return the sum of squares of clip over noise, over the steps that a record is in."""
    return sum(one.occurrences / one.believed_noise**2 for one in steps)


@lru_cache(maxsize=1024)
def _composed_epsilon(
    sampled: Sequence[tuple[tuple[float, float], int]], whole: float, records: int, delta: float
) -> float:
    """Return epsilon by the composed privacy losses, on a grid that suits its size.

    Args:
        sampled: number of steps by noise and rate of Poisson samples.
        whole: square of the sensitivity over the noise of all other steps together.
        records: how many records are added or removed together.
        delta: the delta of the guarantee.

    """
    draws = sum(count for _, count in sampled)
    points = MAX_GRID_POINTS if records == 1 else MAX_GROUP_GRID_POINTS
    widest = max(_largest_loss(noise, rate, records) for (noise, rate), _ in sampled) / points
    # The grid adds about draws * grid^2: this share of epsilon.
    error = 1e-3 if records == 1 else 4e-3
    grid = max(COARSEST_GRID, widest)
    while True:
        found = _epsilon_on_grid(sampled, whole, records, delta, grid)
        finer = max(math.sqrt(error * found / draws), widest, FINEST_GRID)
        if finer > 0.7 * grid or found > 2 * MEANINGLESS_EPSILON:
            return found
        grid = finer


def _epsilon_on_grid(
    sampled: Sequence[tuple[tuple[float, float], int]],
    whole: float,
    records: int,
    delta: float,
    grid: float,
) -> float:
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    losses = [
        _losses(noise, rate, records, grid).self_compose(count)
        for (noise, rate), count in sampled
    ]
    if whole:
        losses.append(
            from_gaussian_mechanism(1 / math.sqrt(whole), value_discretization_interval=grid)
        )
    composed, *others = losses
    for one in others:
        composed = composed.compose(one)
    return float(composed.get_epsilon_for_delta(delta))


def _losses(noise: float, rate: float, records: int, grid: float) -> "PrivacyLossDistribution":
    """Return the privacy losses of a step for records that are sampled by themselves."""
    if records == 1:
        return sampled_losses(noise, rate, grid, "add-or-remove", is_upper=True)
    try:
        from dp_accounting.pld.privacy_loss_distribution import from_mixture_gaussian_mechanism
    except ImportError as missing:
        raise PlanError(INSTALL_HINT) from missing
    chances = _sampled_counts(records, rate)
    return from_mixture_gaussian_mechanism(
        noise,
        [float(count) for count in chances],
        list(chances.values()),
        value_discretization_interval=grid,
    )


def _sampled_counts(records: int, rate: float) -> Mapping[int, float]:
    """Return how probable each number of sampled records is, without negligible ones.

    The fewest are counted together as the smallest number that is not negligible, which only
    raises epsilon. The most are missing.
    """
    from scipy.stats import binom

    law = binom(records, rate)
    low = max(int(law.ppf(NEGLIGIBLE_MASS)), 0)
    high = min(int(law.isf(NEGLIGIBLE_MASS)), records)
    counts = range(low, min(high, low + MAX_SAMPLED_COUNTS) + 1)
    chances = dict(zip(counts, law.pmf(counts).tolist(), strict=True))
    chances[low] = float(law.cdf(low))
    return {count: chance for count, chance in chances.items() if chance > 0}


def _largest_loss(noise: float, rate: float, records: int) -> float:
    """Return about the largest privacy loss of a step, at ten deviations of the noise."""
    if records == 1:
        return largest_loss(noise, rate)
    most = max(_sampled_counts(records, rate))
    return (most / 2 + 10 * noise) * most / noise**2
