from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multinomial

from overheard.core.seeds import Seed
from overheard.data.draws import apportion, draw_counts, draw_stratified


def test_the_largest_remainders_are_rounded_up() -> None:
    # 7 * (.5, .3, .2) = (3.5, 2.1, 1.4): 3 + 2 + 1 = 6, and one more for remainder .5.
    assert apportion(torch.tensor([0.5, 0.3, 0.2]), 7).tolist() == [4, 2, 1]


def test_the_first_of_equal_remainders_is_rounded_up() -> None:
    assert apportion(torch.ones(3), 4).tolist() == [2, 1, 1]


@given(
    weights=st.lists(st.floats(0, 100), min_size=1, max_size=8).filter(lambda w: sum(w) > 1e-3),
    total=st.integers(0, 1000),
)
def test_counts_sum_to_the_total_and_differ_from_exact_shares_by_less_than_one(
    weights: list[float], total: int
) -> None:
    counts = apportion(torch.tensor(weights, dtype=torch.float64), total)
    assert int(counts.sum()) == total
    exact = torch.tensor(weights, dtype=torch.float64) / sum(weights) * total
    assert float((counts - exact).abs().max()) < 1 + 1e-6


@pytest.mark.parametrize("weights", [[0.0, 0.0], [1.0, -1.0], [float("nan"), 1.0]])
def test_refuses_invalid_weights(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weights"):
        apportion(torch.tensor(weights), 3)


def test_counts_are_multinomial() -> None:
    # Three examples of shares .5 and .5: 3, 2, 1 or 0 of the first in 1, 3, 3, 1 of 8 draws.
    drawn = Counter(
        int(draw_counts(torch.tensor([2.0, 2.0]), 3, Seed(seed))[0]) for seed in range(4000)
    )
    expected = multinomial(3, [0.5, 0.5])
    for first in range(4):
        share = drawn[first] / 4000
        assert share == pytest.approx(expected.pmf([first, 3 - first]), abs=0.03)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5), st.integers(0, 50))
def test_counts_add_up_and_a_label_without_share_gets_none(
    weights: list[int], size: int
) -> None:
    shares = torch.tensor([*weights, 1], dtype=torch.float64)
    counts = draw_counts(shares, size, Seed(1))
    assert int(counts.sum()) == size
    assert bool((counts[shares == 0] == 0).all())


@given(
    counts=st.lists(
        st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=6
    ),
    seed=st.integers(0, 999),
)
def test_each_client_gets_exactly_its_counts_and_no_row_twice(
    counts: list[list[int]], seed: int
) -> None:
    strata = torch.arange(90) % 3
    rows = draw_stratified(strata, torch.tensor(counts), 3, Seed(seed))
    assert [strata[held].bincount(minlength=3).tolist() for held in rows] == counts
    all_rows = torch.cat(rows)
    assert len(all_rows.unique()) == len(all_rows)
