"""Intervals of proportions, rates and medians are exact."""

from math import comb, inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, poisson

from overheard.statistics.exact_intervals import (
    estimate_mean_time_between,
    estimate_median,
    estimate_proportion,
)


@settings(deadline=None, max_examples=50)
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


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 60), st.floats(1, 1e5))
def test_the_ends_of_a_mean_time_have_the_tail_probabilities(events: int, time: float):
    result = estimate_mean_time_between(events, time)
    assert result.mean == pytest.approx(time / events)
    assert result.low is not None
    assert result.high is not None
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
    assert result.low is not None
    assert result.high is not None
    below = int(result.low) - 1
    assert count - int(result.high) == below
    outside = sum(comb(count, number) for number in range(below + 1)) / 2**count
    assert outside <= 0.025
    narrower = outside + comb(count, below + 1) / 2**count
    assert narrower > 0.025
