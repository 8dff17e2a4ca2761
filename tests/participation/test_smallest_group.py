"""The bracket contains the smallest group that an exhaustive search finds."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from overheard.participation.smallest_group import find_smallest_group


def matrix(*rows: str) -> NDArray[np.bool_]:
    return np.array([[letter == "x" for letter in row] for row in rows])


def exhaustive(took_part: NDArray[np.bool_]) -> int:
    """Return the fewest clients without which the rank falls: they hold a vector of rows."""
    ones = took_part.astype(float)
    rank = np.linalg.matrix_rank(ones)
    clients = ones.shape[1]
    for size in range(1, clients):
        for group in combinations(range(clients), size):
            if np.linalg.matrix_rank(np.delete(ones, group, axis=1)) < rank:
                return size
    return clients


@st.composite
def participations(draw: st.DrawFn) -> NDArray[np.bool_]:
    clients, rounds = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    row = st.lists(st.booleans(), min_size=clients, max_size=clients)
    drawn = np.array(draw(st.lists(row, min_size=rounds, max_size=rounds)))
    drawn[0] |= ~drawn.any(axis=0)  # each client is in some sum
    return drawn


@given(participations())
def test_the_bounds_hold_and_meet_for_few_clients(took_part: NDArray[np.bool_]):
    found, best = find_smallest_group(took_part), exhaustive(took_part)
    assert found.at_least == best == found.at_most == len(found.clients)
    # The group can be had: without it the rank falls.
    ones = took_part.astype(float)
    rest = np.delete(ones, found.clients, axis=1)
    assert not rest.size or np.linalg.matrix_rank(rest) < np.linalg.matrix_rank(ones)


def test_clients_that_are_always_together_are_never_separated():
    found = find_smallest_group(matrix("xxx..", "...xx", "xxxxx"))
    assert (found.at_least, found.at_most, found.clients) == (2, 2, (3, 4))
    assert found.one_apart == ()


def test_two_rounds_of_three_clients_give_a_difference_of_two():
    # The sums of clients 0, 1 and of 1, 2 give 0 minus 2, and no client alone.
    found = find_smallest_group(matrix("xx.", ".xx"))
    assert (found.at_least, found.at_most) == (2, 2)


def test_cohorts_that_differ_by_one_client_give_it_away():
    found = find_smallest_group(matrix("xxxx.", "xxx..", "xxxxx"))
    assert (found.at_most, found.one_apart) == (1, (3, 4))


def test_many_clients_are_bracketed_from_both_sides():
    draws = np.random.default_rng(0)
    drawn = np.array([draws.permutation(60) < 20 for _ in range(20)])
    found = find_smallest_group(drawn)
    assert 1 < found.at_least < found.at_most <= 20
    rest = np.delete(drawn.astype(float), found.clients, axis=1)
    assert np.linalg.matrix_rank(rest) < 20


@pytest.mark.parametrize("rounds", [1, 7])
def test_one_fixed_cohort_is_one_group(rounds: int):
    found = find_smallest_group(np.ones((rounds, 9), dtype=bool))
    assert (found.at_least, found.at_most) == (9, 9)
