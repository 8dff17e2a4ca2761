"""Re-pairings permute units within groups, and tell the smallest p-value that they can give."""

import numpy as np
import pytest

from overheard.core.seeds import Seed
from overheard.findings.re_paired_fits import (
    count_arrangements,
    re_pair_runs,
    re_pair_units,
    smallest_p_value,
)


def test_the_true_pairing_comes_first_and_all_others_follow() -> None:
    fits = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
    found = re_pair_units(fits, np.zeros(3, dtype=int), range(3), Seed(0))
    # The identity fits 3 times; three transpositions once; two rotations never.
    assert found.fits[0, 0] == 3.0
    assert sorted(found.fits[:, 0]) == [0.0, 0.0, 1.0, 1.0, 1.0, 3.0]
    assert found.smallest_p_value == pytest.approx(1 / 6)


def test_units_with_equal_truths_are_no_different_pairings() -> None:
    # One of five people differs: five places for it.
    assert count_arrangements([0] * 5, "aaaab") == 5
    fits = np.random.default_rng(0).normal(size=(1, 5, 2))[:, :, [0, 0, 0, 0, 1]]
    found = re_pair_units(fits, np.zeros(5, dtype=int), "aaaab", Seed(0))
    assert found.smallest_p_value == pytest.approx(1 / 5)
    assert len(set(np.round(found.fits[:, 0], 9))) == 5


def test_few_random_pairings_limit_the_p_value() -> None:
    assert smallest_p_value(10**9, 1000) == 1e-3
    assert smallest_p_value(6, 720) == pytest.approx(1 / 6)


def test_few_pairings_of_all_runs_are_enumerated_together() -> None:
    groups = [np.array([0, 0]), np.array([0, 0, 0])]
    one, other = re_pair_runs(groups, Seed(0))
    joint = {
        (*first, *second) for first, second in zip(one.tolist(), other.tolist(), strict=True)
    }
    assert len(one) == len(other) == len(joint) == 2 * 6
    assert (one[0].tolist(), other[0].tolist()) == ([0, 1], [0, 1, 2])


def test_many_pairings_are_drawn_for_each_run_on_its_own() -> None:
    groups = [np.array([0] * 9 + [1] * 3), np.zeros(9, dtype=int)]
    one, other = re_pair_runs(groups, Seed(0))
    assert one.shape == (1000, 12)
    assert one[0].tolist() == list(range(12))
    # Nobody leaves its group.
    assert (np.sort(one[:, 9:], axis=1) == [9, 10, 11]).all()
    assert not (one[:, :9] == other).all()
