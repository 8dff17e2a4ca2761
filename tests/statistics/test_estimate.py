"""Intervals are what they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.statistics.estimate import estimate

SEED = Seed(3)


def test_values_that_are_all_alike_leave_nothing_to_doubt():
    alike = estimate(np.full(6, 0.7), np.array([0, 0, 0, 1, 1, 2]), SEED)
    assert (alike.mean, alike.low, alike.high) == pytest.approx((0.7, 0.7, 0.7))


def test_two_values_of_one_seed_are_drawn_between_their_ends():
    # Of two draws from {0, 1} a quarter are (0, 0) and a quarter (1, 1): the 2.5 % and
    # 97.5 % points are the ends.
    two = estimate(np.array([0.0, 1.0]), np.array([0, 0]), SEED)
    assert (two.mean, two.low, two.high) == (0.5, 0.0, 1.0)


def test_runs_that_differ_widen_the_interval_more_than_targets_that_do():
    # Ten values 0 and ten 1. As 2 runs of ten each, whole runs are drawn: in a quarter of the
    # draws both are the same one, and the ends are 0 and 1. As ten runs of (0, 1) each, 20
    # independent coins would give 0.5 +- 1.96 * 0.5 / sqrt(20) = 0.28 to 0.72.
    values = np.repeat([0.0, 1.0], 10)
    runs = estimate(values, np.repeat([0, 1], 10), SEED)
    assert (runs.low, runs.high) == (0.0, 1.0)
    mixed = estimate(values, np.tile(np.arange(10), 2), SEED)
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
    told = estimate(values, np.array([cluster for _, cluster in drawn]), SEED)
    assert told.low is not None
    assert told.high is not None
    slack = 1e-9
    assert values.min() - slack <= told.low <= told.mean + slack
    assert told.mean - slack <= told.high <= values.max() + slack


@pytest.mark.slow
def test_the_interval_covers_the_true_mean_about_as_often_as_it_says():
    # 24 runs of 4 targets; runs differ by a standard deviation of 1, targets by 1. Of 200
    # simulated audits 95 % = 190 should cover 0; its standard deviation is 3, and a percentile
    # bootstrap over 24 clusters is a little short of its level, by 2 % or so.
    generator = SEED.numpy()
    clusters, covered, audits = np.repeat(np.arange(24), 4), 0, 200
    for number in range(audits):
        values = generator.normal(size=24)[clusters] + generator.normal(size=96)
        told = estimate(values, clusters, Seed(number))
        assert told.low is not None
        assert told.high is not None
        covered += told.low <= 0 <= told.high
    assert 0.88 <= covered / audits <= 0.98


def test_what_is_one_persons_is_drawn_whole():
    # Two people of one run, ten values 0 and ten 1: in a quarter of the draws one is twice.
    values, run = np.repeat([0.0, 1.0], 10), np.zeros(20, dtype=np.int64)
    people = np.repeat([0, 1], 10)
    told = estimate(values, run, SEED, people)
    assert (told.mean, told.low, told.high) == (0.5, 0.0, 1.0)
    apart = estimate(values, run, SEED)
    assert apart.low is not None
    assert apart.low > 0.2


def test_people_who_are_each_their_own_are_drawn_as_values_are():
    values, run = np.arange(6.0), np.array([0, 0, 0, 1, 1, 1])
    assert estimate(values, run, SEED, np.arange(6)) == estimate(values, run, SEED)


def test_one_person_alone_has_no_interval_however_many_values():
    told = estimate(np.arange(6.0), np.zeros(6, dtype=np.int64), SEED, np.zeros(6, np.int64))
    assert (told.mean, told.low, told.high) == (2.5, None, None)
