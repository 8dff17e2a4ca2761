"""Means beside their guesses, and intervals that are what they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overheard.audit.finding import Cell, Finding
from overheard.audit.summary import estimate, summarise
from overheard.core.parties import SERVER, Party, client
from overheard.core.scorer import Better, Score
from overheard.core.seeds import Seed

SEED = Seed(3)


def found(
    value: float,
    blinds: dict[str, float],
    *,
    target: Party = client(0),  # noqa: B008 - a value that never changes
    seed: int = 0,
    arm: str = "none",
    rounds: tuple[int, ...] = (0, 1),
    better: Better = "lower",
) -> Finding:
    cell = Cell(arm, seed, (SERVER,), "decaf", "Decaf()", "label_shares", rounds)
    score = Score("l1", value, better, blinds, {"told": value / 2})
    return Finding(cell, target, (1.0,), (1.0,), (score,))


def test_means_are_taken_over_targets_and_stand_beside_the_best_single_guess():
    # values 0.2, 0.4 -> 0.3; guess a: 0.5, 0.7 -> 0.6; guess b: 0.1, 1.5 -> 0.8
    # The best single guess is a, although b is better on the first target. Gain 0.6 - 0.3.
    findings = [
        found(0.2, {"a": 0.5, "b": 0.1}, target=client(0)),
        found(0.4, {"a": 0.7, "b": 1.5}, target=client(1)),
    ]
    (row,) = summarise(findings, SEED)
    assert row.value.mean == pytest.approx(0.3)
    assert dict(row.blinds) == {"a": pytest.approx(0.6), "b": pytest.approx(0.8)}
    assert row.blind == pytest.approx(0.6)
    assert row.gain is not None
    assert row.gain.mean == pytest.approx(0.3)
    assert row.references["told"] == pytest.approx(0.15)
    assert (row.targets, row.seeds) == (2, 1)


def test_where_higher_is_better_the_highest_guess_is_best_and_the_gain_turns():
    # the best guess is b at 0.6; 0.5 - 0.6
    (row,) = summarise([found(0.5, {"a": 0.2, "b": 0.6}, better="higher")], SEED)
    assert row.blind == pytest.approx(0.6)
    assert row.gain is not None
    assert row.gain.mean == pytest.approx(-0.1)


def test_the_gain_is_taken_target_by_target():
    # Gains are 0.5 for both targets, so their interval has no width, though values differ.
    findings = [
        found(0.1, {"a": 0.6}, target=client(0)),
        found(1.1, {"a": 1.6}, target=client(1)),
    ]
    (row,) = summarise(findings, SEED)
    assert row.gain is not None
    assert row.gain.low == pytest.approx(0.5)
    assert row.gain.high == pytest.approx(0.5)
    assert (row.value.low, row.value.high) == (pytest.approx(0.1), pytest.approx(1.1))


def test_where_nobody_can_guess_there_is_no_gain():
    (row,) = summarise([found(0.5, {})], SEED)
    assert row.blind is None
    assert row.gain is None


def test_one_figure_alone_has_no_interval():
    (row,) = summarise([found(0.5, {"a": 1.0})], SEED)
    assert row.value.mean == 0.5
    assert (row.value.low, row.value.high) == (None, None)
    assert row.gain is not None
    assert (row.gain.low, row.gain.high) == (None, None)


def test_there_is_a_row_for_each_arm_and_each_rounds_heard_over_all_seeds():
    findings = [
        found(0.1 * seed, {"a": 1.0}, seed=seed, arm=arm, rounds=rounds)
        for seed in (0, 1, 2)
        for arm in ("none", "noise")
        for rounds in ((0, 1), (0,))
    ]
    rows = summarise(findings, SEED)
    assert [(row.arm, row.rounds) for row in rows] == [
        ("none", (0, 1)),
        ("none", (0,)),
        ("noise", (0, 1)),
        ("noise", (0,)),
    ]
    assert {row.seeds for row in rows} == {3}
    assert rows[0].value.mean == pytest.approx(0.1)  # of 0, 0.1, 0.2


def test_nothing_found_is_nothing_to_tell():
    assert summarise([], SEED) == ()


def test_the_same_seed_gives_the_same_interval_to_the_last_bit():
    values = Seed(1).numpy().random(9).tolist()
    findings = [found(value, {"a": 1.0}, target=client(n)) for n, value in enumerate(values)]
    assert summarise(findings, SEED) == summarise(findings, SEED)
    assert summarise(findings, SEED) != summarise(findings, Seed(4))


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
