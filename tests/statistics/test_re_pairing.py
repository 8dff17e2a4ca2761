"""Re-pairings stay within groups and are equally likely."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.statistics.re_pairing import (
    count_pairings,
    re_drawn_runs,
    re_pairings,
    smallest_p_value,
)

SEED = Seed(3)


def test_all_permutations_within_groups_are_enumerated_once():
    # Groups {0, 2} and {1, 3, 4}: 2 x 6 pairings.
    pairings = re_pairings(np.array([7, 9, 7, 9, 9]), SEED)
    assert len(np.unique(pairings, axis=0)) == len(pairings) == 12
    assert pairings[0].tolist() == [0, 1, 2, 3, 4]
    assert {tuple(sorted(row)) for row in pairings[:, [0, 2]].tolist()} == {(0, 2)}
    assert {tuple(sorted(row)) for row in pairings[:, [1, 3, 4]].tolist()} == {(1, 3, 4)}


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(1, 200))
def test_every_pairing_permutes_within_groups(labels: list[int], most: int):
    groups = np.array(labels)
    pairings = re_pairings(groups, SEED, most, draws=20)
    sizes = np.unique(groups, return_counts=True)[1].tolist()
    assert len(pairings) == (count_pairings(sizes) if count_pairings(sizes) <= most else 21)
    assert (pairings[0] == np.arange(len(groups))).all()
    assert (np.sort(pairings, axis=1) == np.arange(len(groups))).all()
    assert (groups[pairings] == groups).all()


def test_random_pairings_are_uniform():
    # Each of 8 targets meets each of the others, and itself, in 1 of 8 pairings: 500 of 4,000
    # with a standard deviation of 21.
    pairings = re_pairings(np.zeros(8, dtype=np.int64), SEED, draws=4000)[1:]
    counts = np.array([np.bincount(column, minlength=8) for column in pairings.T])
    assert np.abs(counts - 500).max() < 5 * 21


def test_all_choices_among_alternatives_are_enumerated_once():
    choices = re_drawn_runs([3, 2], SEED)
    assert choices.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]]


def test_random_choices_include_what_happened():
    # Uniform over 4 alternatives, the first included: 2,500 each of 10,000, deviation 43.
    choices = re_drawn_runs([4] * 10, SEED, draws=10_000)
    assert choices.shape == (10_001, 10)
    assert (choices[0] == 0).all()
    counts = np.array([np.bincount(column, minlength=4) for column in choices[1:].T])
    assert np.abs(counts - 2500).max() < 5 * 43


@pytest.mark.parametrize(
    ("sizes", "smallest"),
    [
        ([4], 1 / 24),  # one recorded run of 4 clients: above 0.025
        ([5], 1 / 120),
        ([4, 4], 1 / 576),
        ([3, 3], 1 / 36),
        ([20], 1 / 1000),  # random pairings
        ([1, 1], 1.0),
    ],
)
def test_the_smallest_p_value_follows_from_the_sizes(sizes: list[int], smallest: float):
    assert smallest_p_value(count_pairings(sizes)) == pytest.approx(smallest)


def test_the_last_number_of_pairings_that_is_enumerated_has_the_smallest_p_value():
    assert (smallest_p_value(10_000), smallest_p_value(10_001)) == (1e-4, 1e-3)
