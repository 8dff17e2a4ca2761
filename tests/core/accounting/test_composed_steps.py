"""Epsilon of steps of DP-SGD that differ, for one record or several."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom, norm

from overheard.core.accounting.accountant import gaussian_epsilon
from overheard.core.accounting.composed_steps import NoisySteps, steps_epsilon
from tests.core.closed_form_epsilon import closed_epsilon

DELTA = 1e-5


def poisson(noise: float, rate: float, steps: int) -> NoisySteps:
    return NoisySteps(noise, "poisson", rate, steps)


def independent_epsilon(
    kinds: Sequence[tuple[float, float, int]], records: int, delta: float
) -> float:
    """Return epsilon by Riemann sums over the noise, composed by the fast Fourier transform.

    Nothing is rounded up or down: losses go to the nearest of the grid. Both directions.
    """
    grid, size = 2e-4, 2**19
    counts = np.arange(records + 1)
    epsilons = []
    for is_removed in (True, False):
        transform = np.ones(size // 2 + 1, complex)
        for noise, rate, steps in kinds:
            x = np.linspace(-14 * noise, 14 * noise + records, 40_001)
            logs = binom(records, rate).logpmf(counts) + norm.logpdf(
                x[:, None], counts, noise
            )  # (noise, counts)
            with_group, without = logsumexp(logs, axis=1), norm.logpdf(x, 0, noise)
            first, second = (with_group, without) if is_removed else (without, with_group)
            mass = np.exp(first) * (x[1] - x[0])
            places = np.rint((first - second) / grid).astype(int) % size
            losses = np.bincount(places, mass, size)
            transform *= np.fft.rfft(losses) ** steps
        losses = np.fft.irfft(transform, size)
        values = grid * np.where(np.arange(size) < size // 2, np.arange(size), 0)
        order = np.arange(1, size // 2)
        low, high = 0.0, 100.0
        for _ in range(50):
            middle = (low + high) / 2
            above = order[values[order] > middle]
            excess = losses[above] @ -np.expm1(middle - values[above])
            low, high = (middle, high) if excess > delta else (low, middle)
        epsilons.append(high)
    return max(epsilons)


# Flower's example of Opacus: CIFAR-10, 10 nodes of 4,000 examples or 2 nodes of 20,000, batches
# of 32, one epoch a round, Poisson. It reports the epsilon of one round.
@pytest.mark.parametrize(
    ("noise", "batches", "printed"),
    [
        (1.0, 125, {1: 0.61, 20: 2.27}),
        pytest.param(1.0, 125, {3: 0.93, 100: 5.42}, marks=pytest.mark.nightly),
        pytest.param(
            1.5, 125, {1: 0.25, 3: 0.44, 20: 1.17, 100: 2.80}, marks=pytest.mark.nightly
        ),
        pytest.param(
            1.0, 625, {1: 0.20, 3: 0.34, 20: 0.89, 100: 2.13}, marks=pytest.mark.nightly
        ),
    ],
)
def test_rounds_of_the_example_of_opacus_spend_what_is_published(
    noise: float, batches: int, printed: dict[int, float]
) -> None:
    of_round = poisson(noise, 1 / batches, batches)
    for rounds, epsilon in printed.items():
        found = steps_epsilon([of_round] * rounds, DELTA)
        assert found == pytest.approx(epsilon, abs=0.01 * epsilon + 0.005)


@pytest.mark.parametrize(
    ("kinds", "records"),
    [
        ([(1.0, 0.02, 50), (2.0, 0.1, 20)], 1),
        ([(2.0, 0.1, 5), (1.5, 0.05, 5)], 2),
        pytest.param([(1.0, 1 / 125, 375)], 1, marks=pytest.mark.nightly),
        pytest.param([(1.0, 0.02, 50)], 3, marks=pytest.mark.nightly),
        pytest.param([(4.0, 0.1, 50)], 5, marks=pytest.mark.nightly),
    ],
)
def test_epsilon_of_a_user_and_of_changed_noise_is_that_of_an_independent_computation(
    kinds: list[tuple[float, float, int]], records: int
) -> None:
    exact = independent_epsilon(kinds, records, DELTA)
    found = steps_epsilon([poisson(*kind) for kind in kinds], DELTA, records)
    assert exact * 0.9995 < found < exact * 1.01


def test_records_of_a_user_cost_more_than_their_number_times_epsilon() -> None:
    steps = [poisson(1.0, 0.02, 10)]
    one, three = (steps_epsilon(steps, DELTA, records) for records in (1, 3))
    assert three > 3.2 * one


def test_records_of_a_user_may_share_their_shuffled_batch() -> None:
    # Each record is in one step of each of two epochs; three of them add three clips to it.
    epochs = [NoisySteps(4.0, "shuffled", 1 / 10, 10)] * 2
    assert steps_epsilon(epochs, DELTA) == gaussian_epsilon(4.0, 2, DELTA)
    three = gaussian_epsilon(4.0 / 3, 2, DELTA)
    assert steps_epsilon(epochs, DELTA, 3) == pytest.approx(three)
    # A message of 11 steps begins a second epoch.
    longer = [NoisySteps(4.0, "shuffled", 1 / 10, 11)]
    assert steps_epsilon(longer, DELTA) == steps_epsilon(epochs, DELTA)


def test_shuffled_and_poisson_rounds_of_one_client_are_composed() -> None:
    shuffled = [NoisySteps(4.0, "shuffled", 1 / 10, 10)] * 3
    drawn = [poisson(1.0, 0.02, 50)]
    apart = [steps_epsilon(one, DELTA) for one in (shuffled, drawn)]
    both = steps_epsilon([*shuffled, *drawn], DELTA)
    assert max(apart) < both < sum(apart)


def test_a_client_that_sent_nothing_spent_nothing_and_one_without_noise_everything() -> None:
    assert steps_epsilon([], DELTA) == 0.0
    honest = poisson(1.0, 0.02, 50)
    assert steps_epsilon([honest, poisson(0.0, 0.02, 1)], DELTA) == math.inf


def test_all_records_of_a_client_need_much_noise() -> None:
    # A step samples 32 records on average, which add 32 clips.
    of_round = poisson(1.0, 1 / 125, 125)
    assert steps_epsilon([of_round] * 20, DELTA, 4000) == math.inf
    # With noise of 100 clips that is nearly a Gaussian of mu = 0.32 sqrt(125).
    found = steps_epsilon([poisson(100.0, 1 / 125, 125)], DELTA, 4000)
    assert 1 < found / closed_epsilon(0.32 * math.sqrt(125), DELTA) < 1.05


@pytest.mark.parametrize(("delta", "records"), [(0.0, 1), (1.0, 1), (math.nan, 1), (1e-5, 0)])
def test_refuses_an_impossible_delta_or_group(delta: float, records: int) -> None:
    with pytest.raises(ValueError, match="delta must lie above 0"):
        steps_epsilon([poisson(1.0, 0.02, 50)], delta, records)


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "records"),
    [
        (1e-6, 1e-9, 10, 1),
        (1e10, 0.5, 10, 2**53),
        (1e-300, 0.5, 1, 1),
        (1.0, 1e-300, 2**31 - 1, 2**53),
    ],
)
def test_extreme_facts_cost_no_time(
    noise: float, rate: float, steps: int, records: int
) -> None:
    strange = [poisson(noise, rate, steps), poisson(2.0, 0.5, 2)]
    assert steps_epsilon(strange, DELTA, records) > 1
