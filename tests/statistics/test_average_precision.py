"""Average precision equals sklearn's without ties, and the mean over all orders with ties."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from overheard.statistics.average_precision import (
    average_precisions,
    random_average_precisions,
    shared_average_precisions,
)


def precisions(scores: list[float], owners: list[int], count: int = 2) -> list[float]:
    return average_precisions(
        np.array(scores, dtype=np.float64), np.array(owners), count
    ).tolist()


def of_order(order: tuple[int, ...], owner: int) -> float:
    """Return the average precision by its definition: the mean of k / r(k)."""
    ranks = [rank for rank, other in enumerate(order, 1) if other == owner]
    return sum(k / rank for k, rank in enumerate(ranks, 1)) / len(ranks)


def test_a_small_ranking_has_the_expected_precisions() -> None:
    # Order: 0 1 0 1 1. Owner 0 is at ranks 1 and 3, owner 1 at 2, 4 and 5.
    result = precisions([5, 4, 3, 2, 1], [0, 1, 0, 1, 1])
    assert result == pytest.approx([(1 + 2 / 3) / 2, (1 / 2 + 2 / 4 + 3 / 5) / 3])


def test_a_small_tie_has_the_expected_precisions() -> None:
    # First a target of 1, then one of 0 and one of 1 tied: 0 is at rank 2 or 3, (1/2 + 1/3) / 2
    # = 5/12. Owner 1 is at 1 and 2, or at 1 and 3: (1 + (1 + 2/3) / 2) / 2 = 11/12.
    assert precisions([2, 1, 1], [1, 0, 1]) == pytest.approx([5 / 12, 11 / 12])


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=2, max_size=6).filter(
        lambda targets: len({owner for _, owner in targets}) == 2
    )
)
def test_ties_give_the_mean_over_all_their_orders(targets: list[tuple[int, int]]) -> None:
    orders = {
        order
        for order in permutations(range(len(targets)))
        if all(targets[a][0] >= targets[b][0] for a, b in pairwise(order))
    }
    for owner in (0, 1):
        every = [of_order(tuple(targets[n][1] for n in order), owner) for order in orders]
        result = precisions([float(score) for score, _ in targets], [one for _, one in targets])
        assert result[owner] == pytest.approx(np.mean(every))


@given(st.permutations(range(12)), st.lists(st.integers(0, 1), min_size=12, max_size=12))
def test_without_ties_it_equals_sklearns(scores: list[int], owners: list[int]) -> None:
    owners[:2] = [0, 1]
    result = precisions([float(score) for score in scores], owners)
    assert result[1] == pytest.approx(average_precision_score(owners, scores))


def test_equal_scores_get_the_value_of_a_random_ranking() -> None:
    # Of 4 targets one is 0's: (1 + 1/2 + 1/3 + 1/4) / 4 = 25/48, well above 1/4.
    equal = precisions([3.0] * 4, [0, 1, 1, 1])
    assert equal == pytest.approx(random_average_precisions(np.array([1, 3]), 4).tolist())
    assert equal[0] == pytest.approx(25 / 48)


def test_an_owner_without_targets_gets_nan() -> None:
    result = precisions([2, 1], [0, 2], count=4)
    assert result == pytest.approx([1.0, np.nan, 0.5, np.nan], nan_ok=True)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), min_size=1, max_size=9)
)
def test_targets_of_many_owners_count_for_each_of_them(
    targets: list[tuple[int, bool, bool]],
) -> None:
    scores, *owned = (np.array(column) for column in zip(*targets, strict=True))
    expected = [average_precisions(scores, one.astype(int), 2)[1] for one in owned]
    found = shared_average_precisions(scores, np.array(owned))
    assert found == pytest.approx(expected, nan_ok=True)


def test_a_score_of_minus_infinity_ranks_last() -> None:
    assert precisions([-np.inf, 0.0], [0, 1]) == [0.5, 1.0]
