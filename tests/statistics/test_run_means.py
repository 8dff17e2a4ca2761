"""Intervals of means cover what they say they cover."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.statistics.estimate import Estimate
from overheard.statistics.exact_intervals import estimate_proportion
from overheard.statistics.run_means import estimate_gain, estimate_mean

SEED = Seed(3)


def ends(estimate: Estimate) -> tuple[float, float]:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def test_five_runs_have_students_interval_over_their_means() -> None:
    # Run means 1 .. 5: mean 3, variance 2.5, standard error sqrt(0.5), quantile 2.776 at 4
    # degrees of freedom. Targets within a run differ, and that does not matter.
    values = np.array([mean + shift for mean in range(1, 6) for shift in (-9.0, 9.0)])
    result = estimate_mean(values, np.repeat(np.arange(5), 2))
    assert result.mean == 3
    assert ends(result) == pytest.approx((3 - 1.963, 3 + 1.963), abs=1e-3)
    assert (result.basis, result.degrees) == ("runs", 4)


def test_runs_are_weighted_by_their_targets() -> None:
    # Means 0, 0, 0, 0 of one target each and 3 of two: mean 6 / 6 = 1. Residuals
    # (n / 1.2) (mean - 1) are -5/6 four times and 20/6: squares 100/36 + 400/36 = 500/36.
    # Standard error sqrt(500 / 36 / 20) = 0.8333.
    values = np.array([0.0, 0.0, 0.0, 0.0, 3.0, 3.0])
    result = estimate_mean(values, np.array([0, 1, 2, 3, 4, 4]))
    assert result.mean == 1
    assert ends(result)[1] == pytest.approx(1 + 2.776 * 0.8333, abs=1e-3)


def test_few_runs_have_an_interval_over_their_clients() -> None:
    # Run 0: 1, 2, 3; run 1: 11, 12, 13. Variance within runs 4 / 4 = 1, standard error
    # sqrt(1 / 6), quantile 2.776 at 4 degrees of freedom. The difference of runs is ignored.
    values, runs = np.array([1.0, 2, 3, 11, 12, 13]), np.array([0, 0, 0, 1, 1, 1])
    result = estimate_mean(values, runs)
    assert ends(result) == pytest.approx((7 - 1.133, 7 + 1.133), abs=1e-3)
    assert (result.basis, result.degrees) == ("these runs", 4)


def test_one_run_has_the_classic_interval_of_student() -> None:
    # 2, 4, 9: mean 5, variance 13, quantile 4.303 at 2 degrees of freedom.
    result = estimate_mean(np.array([2.0, 4.0, 9.0]), np.zeros(3, dtype=np.int64))
    assert ends(result) == pytest.approx((5 - 8.957, 5 + 8.957), abs=1e-2)


def test_few_runs_of_one_target_each_have_an_interval_over_runs() -> None:
    # 1 and 3: mean 2, standard error 1, quantile 12.706 at 1 degree of freedom.
    result = estimate_mean(np.array([1.0, 3.0]), np.array([4, 9]))
    assert ends(result) == pytest.approx((2 - 12.706, 2 + 12.706), abs=1e-2)
    assert result.basis == "runs"


def test_a_single_user_has_no_interval() -> None:
    run, user = np.zeros(6, dtype=np.int64), np.zeros(6, dtype=np.int64)
    result = estimate_mean(np.arange(6.0), run, user)
    assert (result.mean, result.low, result.high) == (2.5, None, None)


def test_an_infinite_mean_has_no_interval() -> None:
    result = estimate_mean(np.array([1.0, np.inf]), np.zeros(2, dtype=np.int64))
    assert (result.low, result.high) == (None, None)


def test_all_values_of_a_user_count_as_one() -> None:
    # Two users with ten values each, 0.2 and 0.6: as two values, mean 0.4, standard error 0.2.
    values, run = np.repeat([0.2, 0.6], 10), np.zeros(20, dtype=np.int64)
    result = estimate_mean(values, run, np.repeat([0, 1], 10))
    assert ends(result)[1] == pytest.approx(0.4 + 12.706 * 0.2, abs=1e-3)
    apart = ends(estimate_mean(values, run))
    assert apart[1] - apart[0] < 0.3


def test_a_proportion_without_misses_has_its_exact_interval() -> None:
    # 0.025^(1/10) = 0.6915 for ten of ten: Student alone would have no width.
    values, runs = np.ones(10), np.repeat([0, 1], 5)
    exact = estimate_proportion(10.0, 10)
    result = estimate_mean(values, runs)
    assert ends(result) == pytest.approx((exact.low, 1.0))
    assert ends(result)[0] == pytest.approx(0.6915, abs=1e-4)
    # The same user in both runs is one trial: 0.025^(1/5).
    users = np.tile(np.arange(5), 2)
    assert ends(estimate_mean(values, runs, users))[0] == pytest.approx(0.4782, abs=1e-4)


def test_means_that_happen_to_be_1_are_no_trials() -> None:
    # As trials, five values of 1 have the interval from 0.025^(1/5) = 0.478 to 1.
    ones, runs = np.ones(5), np.arange(5)
    assert ends(estimate_mean(ones, runs)) == pytest.approx((0.025 ** (1 / 5), 1.0))
    assert ends(estimate_mean(ones, runs, may_be_trials=False)) == (1.0, 1.0)
    gain = estimate_gain(ones, np.full(5, 0.25), runs, may_be_trials=False)
    assert ends(gain) == (0.75, 0.75)


def test_the_gain_of_a_proportion_is_moved_by_the_guess() -> None:
    values, guesses = np.ones(10), np.full(10, 0.25)
    runs = np.repeat([0, 1], 5)
    result = estimate_gain(values, guesses, runs)
    assert (result.mean, *ends(result)) == pytest.approx((0.75, 0.4415, 0.75), abs=1e-4)
    # If lower is better, a value of 1 is worse than the guess by 0.75.
    worse = estimate_gain(values, guesses, runs, sign=-1)
    assert (worse.mean, *ends(worse)) == pytest.approx((-0.75, -0.75, -0.4415), abs=1e-4)


def test_a_gain_is_paired_by_target() -> None:
    # Value and guess differ by exactly 0.3 for each target, however much targets differ.
    values = np.array([0.1, 0.7, 1.9, 0.4])
    result = estimate_gain(values, values + 0.3, np.zeros(4, dtype=np.int64), sign=-1)
    assert (result.mean, *ends(result)) == pytest.approx((0.3, 0.3, 0.3))


@given(st.lists(st.tuples(st.floats(-100, 100), st.integers(0, 6)), min_size=2, max_size=20))
def test_the_interval_contains_the_mean_of_all_values(drawn: list[tuple[float, int]]) -> None:
    values = np.array([value for value, _ in drawn])
    result = estimate_mean(values, np.array([run for _, run in drawn]))
    assert result.mean == pytest.approx(values.mean())
    low, high = ends(result)
    assert low <= result.mean <= high


@pytest.mark.parametrize(("runs", "clients"), [(1, 5), (2, 5), (3, 20), (5, 5), (10, 5)])
def test_95_percent_intervals_cover_95_percent(runs: int, clients: int) -> None:
    # Runs have 30 % of the variance. With fewer than five runs the interval is to cover the
    # mean of these runs. Of 2,000 audits 1,900 cover, with a standard deviation of 10.
    generator, covered, audits = SEED.numpy(), 0, 2000
    run = np.repeat(np.arange(runs), clients)
    for _ in range(audits):
        effect = generator.normal(0, 0.3**0.5, runs)
        values = effect[run] + generator.normal(0, 0.7**0.5, runs * clients)
        low, high = ends(estimate_mean(values, run))
        covered += low <= (effect.mean() if runs < 5 else 0.0) <= high
    assert 1870 <= covered <= 1930


def test_a_user_of_several_runs_counts_once() -> None:
    # Users 1, 2, 3 in both runs, whose means differ by 10: residuals -2, 0, 2 summed over runs,
    # variance 8 / 2 * 3 / 36, standard error sqrt(1 / 3), quantile 4.303 at 2 degrees.
    values, runs = np.array([1.0, 2, 3, 11, 12, 13]), np.array([0, 0, 0, 1, 1, 1])
    result = estimate_mean(values, runs, np.array([1, 2, 3, 1, 2, 3]))
    assert ends(result) == pytest.approx((7 - 2.484, 7 + 2.484), abs=1e-3)
    assert (result.basis, result.degrees) == ("these runs", 2)
    # Runs without a user in common have one variance, and 6 - 2 degrees of freedom.
    assert estimate_mean(values, runs, np.arange(6)) == estimate_mean(values, runs)


@pytest.mark.parametrize("runs", [2, 3, 4])
def test_intervals_over_users_who_recur_cover_further_users(runs: int) -> None:
    # Nine tenths of the variance are a user's own in all runs. With users of different runs
    # taken as different users, 67 to 84 % of these intervals cover.
    generator, covered = SEED.numpy(), 0
    run, users = np.repeat(np.arange(runs), 5), np.tile(np.arange(5), runs)
    for _ in range(1000):
        own, noise = generator.normal(0, 0.9**0.5, 5), generator.normal(0, 0.1**0.5, 5 * runs)
        low, high = ends(estimate_mean(own[users] + noise, run, users))
        covered += low <= 0 <= high
    assert 925 <= covered <= 975
