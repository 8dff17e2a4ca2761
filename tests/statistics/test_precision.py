"""Average precision is that of sklearn without ties, and the mean over all orders with them."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from overheard.statistics.precision import average_precisions, chance_precisions


def precisions(scores: list[float], owners: list[int], count: int = 2) -> list[float]:
    return average_precisions(
        np.array(scores, dtype=np.float64), np.array(owners), count
    ).tolist()


def of_order(order: tuple[int, ...], owner: int) -> float:
    """By the definition: the mean of k / r(k)."""
    ranks = [rank for rank, who in enumerate(order, 1) if who == owner]
    return sum(k / rank for k, rank in enumerate(ranks, 1)) / len(ranks)


def test_a_ranking_is_worked_by_hand_for_every_owner() -> None:
    # Order: 0 1 0 1 1. Owner 0 stands at ranks 1 and 3, owner 1 at 2, 4 and 5.
    got = precisions([5, 4, 3, 2, 1], [0, 1, 0, 1, 1])
    assert got == pytest.approx([(1 + 2 / 3) / 2, (1 / 2 + 2 / 4 + 3 / 5) / 3])


def test_a_tie_is_worked_by_hand() -> None:
    # First a target of 1, then one of 0 and one of 1 tied: 0 is at rank 2 or 3, (1/2 + 1/3) / 2
    # = 5/12. Owner 1 is at 1 and 2, or at 1 and 3: (1 + (1 + 2/3) / 2) / 2 = 11/12.
    assert precisions([2, 1, 1], [1, 0, 1]) == pytest.approx([5 / 12, 11 / 12])


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=2, max_size=6).filter(
        lambda drawn: len({owner for _, owner in drawn}) == 2
    )
)
def test_ties_are_worth_the_mean_over_all_orders_of_them(drawn: list[tuple[int, int]]) -> None:
    orders = {
        order
        for order in permutations(range(len(drawn)))
        if all(drawn[a][0] >= drawn[b][0] for a, b in pairwise(order))
    }
    for owner in (0, 1):
        every = [of_order(tuple(drawn[n][1] for n in order), owner) for order in orders]
        got = precisions([float(score) for score, _ in drawn], [who for _, who in drawn])
        assert got[owner] == pytest.approx(np.mean(every))


@given(st.permutations(range(12)), st.lists(st.integers(0, 1), min_size=12, max_size=12))
def test_without_ties_it_is_the_area_that_sklearn_gives(
    scores: list[int], owners: list[int]
) -> None:
    owners[:2] = [0, 1]
    got = precisions([float(score) for score in scores], owners)
    assert got[1] == pytest.approx(average_precision_score(owners, scores))


def test_scores_that_say_nothing_get_what_a_random_ranking_gets() -> None:
    # Of 4 targets one is 0's: (1 + 1/2 + 1/3 + 1/4) / 4 = 25/48, well above 1/4.
    alike = precisions([3.0] * 4, [0, 1, 1, 1])
    assert alike == pytest.approx(chance_precisions(np.array([1, 3]), 4).tolist())
    assert alike[0] == pytest.approx(25 / 48)


def test_who_sent_nothing_has_no_figure_and_disturbs_nobody() -> None:
    got = precisions([2, 1], [0, 2], count=3)
    assert got[0] == 1.0
    assert np.isnan(got[1])
    assert got[2] == 0.5


def test_a_target_without_a_score_comes_last() -> None:
    assert precisions([-np.inf, 0.0], [0, 1]) == [0.5, 1.0]


def test_one_target_is_always_first() -> None:
    assert chance_precisions(np.array([1]), 1).tolist() == [1.0]
