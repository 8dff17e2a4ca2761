"""Intervals of counts are exact ones."""

from math import comb, inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, poisson

from overheard.statistics.exact import mean_time_between, middle, proportion


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 400), st.data())
def test_a_proportion_has_the_interval_that_scipy_gives(trials: int, data: st.DataObject):
    hits = data.draw(st.integers(0, trials))
    told = proportion(float(hits), trials)
    exact = binomtest(hits, trials).proportion_ci(0.95, "exact")
    assert told.mean == hits / trials
    assert told.low == pytest.approx(exact.low, abs=1e-9)
    assert told.high == pytest.approx(exact.high, abs=1e-9)


def test_a_surer_interval_is_wider():
    told, surer = proportion(3.0, 20), proportion(3.0, 20, 0.99)
    exact = binomtest(3, 20).proportion_ci(0.99, "exact")
    assert (surer.low, surer.high) == pytest.approx((exact.low, exact.high))
    assert surer.low < told.low < told.high < surer.high


def test_no_hit_at_all_leaves_room_for_some():
    # 0 of 20: the chance of that is (1 - p)^20 = 0.025 at the high end.
    told = proportion(0.0, 20)
    assert (told.mean, told.low) == (0.0, 0.0)
    assert told.high == pytest.approx(1 - 0.025 ** (1 / 20))


@pytest.mark.parametrize(("hits", "trials"), [(0, 0), (-1, 3), (4, 3)])
def test_what_is_no_proportion_is_refused(hits: int, trials: int):
    with pytest.raises(ValueError, match="hits are 0 to all"):
        proportion(float(hits), trials)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 60), st.floats(1, 1e5))
def test_the_ends_of_a_mean_time_are_those_at_which_the_count_is_least_likely(
    events: int, time: float
):
    told = mean_time_between(events, time)
    assert told.mean == pytest.approx(time / events)
    assert told.low is not None
    assert told.high is not None
    assert poisson.cdf(events, time / told.low) == pytest.approx(0.025)
    assert poisson.sf(events - 1, time / told.high) == pytest.approx(0.025)


def test_a_time_without_events_is_infinite_but_for_its_low_end():
    # exp(-time / low) = 0.025
    told = mean_time_between(0, 600.0)
    assert (told.mean, told.high) == (inf, inf)
    assert told.low is not None
    assert told.low == pytest.approx(600 / 3.6889, rel=1e-4)


def test_nothing_watched_has_no_mean_time():
    with pytest.raises(ValueError, match="time above 0"):
        mean_time_between(0, 0.0)


def test_a_median_has_an_interval_from_six_values_on():
    # Of 6 values all lie on one side of the median with a chance of 2 / 64 = 0.031 < 0.05.
    assert middle([3.0, 1.0, 2.0, 6.0, 5.0, 4.0]) == middle([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    told = middle([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert (told.mean, told.low, told.high) == (3.5, 1, 6)
    few = middle([1.0, 9.0, 2.0, 4.0, 3.0])
    assert (few.mean, few.low, few.high) == (3, None, None)
    with pytest.raises(ValueError, match="no values"):
        middle([])


@given(st.integers(6, 80))
def test_the_interval_of_a_median_holds_it_with_95_percent_whatever_the_distribution(
    count: int,
):
    # Values 1 .. n: the ends tell how many values lie outside on each side.
    told = middle([float(number) for number in range(1, count + 1)])
    assert told.low is not None
    assert told.high is not None
    below = int(told.low) - 1
    assert count - int(told.high) == below
    outside = sum(comb(count, number) for number in range(below + 1)) / 2**count
    assert outside <= 0.025
    narrower = outside + comb(count, below + 1) / 2**count
    assert narrower > 0.025
