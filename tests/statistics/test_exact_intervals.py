"""Intervals of proportions, rates and medians are exact."""

from math import comb, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binomtest, poisson

from overheard.statistics.estimate import Estimate
from overheard.statistics.exact_intervals import (
    estimate_auc_of_trials,
    estimate_mean_time_between,
    estimate_median,
    estimate_proportion,
    widen_proportion,
)


@given(st.integers(1, 400), st.data())
def test_a_proportion_has_scipys_interval(trials: int, data: st.DataObject):
    hits = data.draw(st.integers(0, trials))
    result = estimate_proportion(float(hits), trials)
    exact = binomtest(hits, trials).proportion_ci(0.95, "exact")
    assert result.mean == hits / trials
    assert result.low == pytest.approx(exact.low, abs=1e-9)
    assert result.high == pytest.approx(exact.high, abs=1e-9)


def test_a_higher_level_gives_a_wider_interval():
    result, wider = estimate_proportion(3.0, 20), estimate_proportion(3.0, 20, 0.99)
    exact = binomtest(3, 20).proportion_ci(0.99, "exact")
    assert (wider.low, wider.high) == pytest.approx((exact.low, exact.high))
    assert wider.low < result.low < result.high < wider.high


def test_the_interval_without_hits_ends_above_zero():
    # 0 of 20: the chance of that is (1 - p)^20 = 0.025 at the high end.
    result = estimate_proportion(0.0, 20)
    assert (result.mean, result.low) == (0.0, 0.0)
    assert result.high == pytest.approx(1 - 0.025 ** (1 / 20))


@pytest.mark.parametrize(("hits", "trials"), [(0, 0), (-1, 3), (4, 3)])
def test_refuses_an_invalid_proportion(hits: int, trials: int):
    with pytest.raises(ValueError, match="hits must be 0 to"):
        estimate_proportion(float(hits), trials)


@given(st.integers(1, 60), st.floats(1, 1e5))
def test_the_ends_of_a_mean_time_have_the_tail_probabilities(events: int, time: float):
    result = estimate_mean_time_between(events, time)
    assert result.mean == pytest.approx(time / events)
    assert poisson.cdf(events, time / result.low) == pytest.approx(0.025)
    assert poisson.sf(events - 1, time / result.high) == pytest.approx(0.025)


def test_without_events_the_mean_time_is_infinite_with_a_finite_lower_end():
    # exp(-time / low) = 0.025
    result = estimate_mean_time_between(0, 600.0)
    assert (result.mean, result.high) == (inf, inf)
    assert result.low is not None
    assert result.low == pytest.approx(600 / 3.6889, rel=1e-4)


def test_refuses_an_observation_time_of_zero():
    with pytest.raises(ValueError, match="time above 0"):
        estimate_mean_time_between(0, 0.0)


def test_a_median_of_six_values_or_more_has_an_interval():
    # Of 6 values all lie on one side of the median with a chance of 2 / 64 = 0.031 < 0.05.
    assert estimate_median([3.0, 1.0, 2.0, 6.0, 5.0, 4.0]) == estimate_median(
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    )
    result = estimate_median([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert (result.mean, result.low, result.high) == (3.5, 1, 6)
    few = estimate_median([1.0, 9.0, 2.0, 4.0, 3.0])
    assert (few.mean, few.low, few.high) == (3, None, None)
    with pytest.raises(ValueError, match="no values"):
        estimate_median([])


@given(st.integers(6, 80))
def test_the_interval_of_a_median_covers_95_percent_and_is_the_narrowest(
    count: int,
):
    # Values 1 .. n: the ends are the numbers of values outside on each side.
    result = estimate_median([float(number) for number in range(1, count + 1)])
    below = int(result.low) - 1
    assert count - int(result.high) == below
    outside = sum(comb(count, number) for number in range(below + 1)) / 2**count
    assert outside <= 0.025
    narrower = outside + comb(count, below + 1) / 2**count
    assert narrower > 0.025


def test_an_auc_without_errors_has_an_interval_below_one() -> None:
    # At A near 1 the score equation 1 - A = z sqrt(A (1 - A) (1 + (n - 1) A / (1 + A)) / n^2)
    # gives A / (1 - A) = n^2 / z^2 / (1 + (n - 1) ((1 - A) / (2 - A) + A / (1 + A))).
    result = estimate_auc_of_trials(1.0, 20, 20)
    assert result.high == 1
    inflation = 1 + 19 * ((1 - result.low) / (2 - result.low) + result.low / (1 + result.low))
    odds = result.low / (1 - result.low)
    assert odds == pytest.approx(400 / 1.95996**2 / inflation, rel=1e-4)
    assert 0.85 < result.low < 0.95


def test_the_interval_of_an_auc_is_symmetric_and_narrower_with_more_trials() -> None:
    result, mirrored = estimate_auc_of_trials(0.7, 30, 50), estimate_auc_of_trials(0.3, 30, 50)
    assert (1 - result.high, 1 - result.low) == pytest.approx((mirrored.low, mirrored.high))
    more = estimate_auc_of_trials(0.7, 300, 500)
    assert result.low < more.low < 0.7 < more.high < result.high


@pytest.mark.parametrize(("value", "count"), [(1.1, 3), (-0.1, 3), (0.5, 0)])
def test_refuses_an_invalid_auc(value: float, count: int) -> None:
    with pytest.raises(ValueError, match="value must be 0 to 1"):
        estimate_auc_of_trials(value, count, 3)


def test_the_interval_of_an_auc_covers_it() -> None:
    # Normal scores that differ by 1.5: AUC = Phi(1.5 / sqrt 2) = 0.8556. Of 400 samples of 15
    # and 25, 380 should cover it, with a standard deviation of 4.
    generator, covered = np.random.default_rng(1), 0
    for _ in range(400):
        positives = generator.normal(1.5, 1, 15)
        auc = float((positives[:, None] > generator.normal(0, 1, 25)).mean())
        result = estimate_auc_of_trials(auc, 15, 25)
        assert result.high is not None
        covered += result.low <= 0.8556 <= result.high
    assert 368 <= covered <= 400


def test_a_proportion_of_clusters_has_the_trials_of_its_standard_error() -> None:
    # 0.8 +- 0.1: as many as 0.16 / 0.01 = 16 trials, of which 12.8 hit.
    low = beta.ppf(0.025, 12.8, 16 - 12.8 + 1)
    wider = widen_proportion(Estimate(0.8, 0.6, 0.99), 0.1, 1000)
    assert (wider.low, wider.high) == pytest.approx((low, 0.99))
    # 1.960 / 2.776 squared is 0.4984: with 4 degrees of freedom there are 7.97 trials.
    few = widen_proportion(Estimate(0.8, 0.7, 0.9, "runs", 4.0), 0.1, 1000)
    hits = 0.8 * 7.974
    low, high = beta.ppf(0.025, hits, 7.974 - hits + 1), beta.ppf(0.975, hits + 1, 7.974 - hits)
    assert (few.low, few.high) == pytest.approx((low, high), abs=1e-4)


def test_a_proportion_of_one_has_a_trial_per_user() -> None:
    assert widen_proportion(Estimate(1.0, 1.0, 1.0), 0.0, 10).low == pytest.approx(
        0.025 ** (1 / 10)
    )


def test_a_small_standard_error_by_chance_gives_no_more_trials_than_there_are() -> None:
    exact = estimate_proportion(20.0, 25)
    wider = widen_proportion(Estimate(0.8, 0.8, 0.8), 0.001, 5, 25.0)
    assert (wider.low, wider.high) == pytest.approx((exact.low, exact.high))


def test_a_rate_that_cannot_vary_keeps_its_width_of_zero() -> None:
    # The AUC of constant scores is a half in every draw of users.
    constant = Estimate(0.5, 0.5, 0.5)
    assert widen_proportion(constant, 0.0, 10) == constant


def test_a_widened_proportion_stays_between_zero_and_one() -> None:
    wider = widen_proportion(Estimate(0.9, 0.5, 1.3), 0.2, 10)
    assert wider.high == 1
    single = Estimate(0.9, None, None)
    assert widen_proportion(single, 0.0, 1) == single
