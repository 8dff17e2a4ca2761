"""Bootstrap intervals have the right width and coverage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.statistics.estimate import estimate_mean

SEED = Seed(3)


def test_equal_values_have_an_interval_of_width_zero():
    equal = estimate_mean(np.full(6, 0.7), np.array([0, 0, 0, 1, 1, 2]), SEED)
    assert (equal.mean, equal.low, equal.high) == pytest.approx((0.7, 0.7, 0.7))


def test_the_interval_of_two_values_spans_both():
    # Of two draws from {0, 1} a quarter are (0, 0) and a quarter (1, 1): the 2.5 % and
    # 97.5 % points are the ends.
    two = estimate_mean(np.array([0.0, 1.0]), np.array([0, 0]), SEED)
    assert (two.mean, two.low, two.high) == (0.5, 0.0, 1.0)


def test_differences_between_runs_widen_the_interval_more_than_those_within():
    # Ten values 0 and ten 1. As 2 runs of ten each, runs are resampled: in a quarter of the
    # draws both are the same one, and the ends are 0 and 1. As ten runs of (0, 1) each, 20
    # independent coins would give 0.5 +- 1.96 * 0.5 / sqrt(20) = 0.28 to 0.72.
    values = np.repeat([0.0, 1.0], 10)
    runs = estimate_mean(values, np.repeat([0, 1], 10), SEED)
    assert (runs.low, runs.high) == (0.0, 1.0)
    mixed = estimate_mean(values, np.tile(np.arange(10), 2), SEED)
    assert mixed.low is not None
    assert mixed.high is not None
    assert 0.2 < mixed.low < 0.35
    assert 0.65 < mixed.high < 0.8


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.floats(-100, 100), st.integers(0, 3)), min_size=2, max_size=12))
def test_the_interval_lies_within_the_values_and_around_their_mean(
    drawn: list[tuple[float, int]],
):
    values = np.array([value for value, _ in drawn])
    result = estimate_mean(values, np.array([cluster for _, cluster in drawn]), SEED)
    assert result.low is not None
    assert result.high is not None
    slack = 1e-9
    assert values.min() - slack <= result.low <= result.mean + slack
    assert result.mean - slack <= result.high <= values.max() + slack


@pytest.mark.slow
def test_the_interval_has_about_its_nominal_coverage():
    # 24 runs of 4 targets; runs differ by a standard deviation of 1, targets by 1. Of 200
    # simulated audits 95 % = 190 should cover 0; its standard deviation is 3, and a percentile
    # bootstrap over 24 clusters is a little short of its level, by 2 % or so.
    generator = SEED.numpy()
    clusters, covered, audits = np.repeat(np.arange(24), 4), 0, 200
    for number in range(audits):
        values = generator.normal(size=24)[clusters] + generator.normal(size=96)
        result = estimate_mean(values, clusters, Seed(number))
        assert result.low is not None
        assert result.high is not None
        covered += result.low <= 0 <= result.high
    assert 0.88 <= covered / audits <= 0.98


def test_all_values_of_a_user_are_resampled_together():
    # Two users, ten values 0 and ten 1: in half of the draws one user is drawn twice.
    values, run = np.repeat([0.0, 1.0], 10), np.zeros(20, dtype=np.int64)
    people = np.repeat([0, 1], 10)
    result = estimate_mean(values, run, SEED, people)
    assert (result.mean, result.low, result.high) == (0.5, 0.0, 1.0)
    apart = estimate_mean(values, run, SEED)
    assert apart.low is not None
    assert apart.low > 0.2


def test_users_with_one_value_each_are_resampled_like_values():
    values, run = np.arange(6.0), np.array([0, 0, 0, 1, 1, 1])
    assert estimate_mean(values, run, SEED, np.arange(6)) == estimate_mean(values, run, SEED)


def test_a_single_user_has_no_interval():
    result = estimate_mean(
        np.arange(6.0), np.zeros(6, dtype=np.int64), SEED, np.zeros(6, np.int64)
    )
    assert (result.mean, result.low, result.high) == (2.5, None, None)
