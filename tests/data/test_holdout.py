"""Numbers of examples: apportioned, and held out."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import DataError
from overheard.core.seeds import Seed
from overheard.data.apportion import apportion
from overheard.data.holdout import hold_out_fifth, hold_out_latest, hold_out_stratified


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


def test_examples_are_held_out_in_proportion_from_each_stratum() -> None:
    # 20 of 60 + 30 + 10 are held out: 12 + 6 + 2.
    strata = torch.tensor([0] * 60 + [1] * 30 + [2] * 10)
    held_out = hold_out_stratified(strata, 20, Seed(0))
    assert strata[held_out].bincount().tolist() == [12, 6, 2]


def test_the_latest_fifth_of_each_user_is_held_out() -> None:
    # User 0 has times 9..0 (latest two: rows 0 and 1), user 1 times 0..4 (latest: row 14).
    users = torch.tensor([0] * 10 + [1] * 5)
    time = torch.tensor([*range(9, -1, -1), *range(5)])
    assert hold_out_latest(users, time).nonzero().flatten().tolist() == [0, 1, 14]


def test_refuses_to_hold_out_of_two_examples() -> None:
    with pytest.raises(DataError, match=r"x.npz has 2 examples"):
        hold_out_fifth(torch.tensor([0, 1]), Seed(0), Path("x.npz"))
