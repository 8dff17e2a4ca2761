import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.data.apportion import apportion


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
