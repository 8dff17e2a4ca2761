"""Valid and invalid claims of label shares."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import TypeCheckError

from overheard.core.errors import ClaimError
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.label_shares.claim import SUM_SLACK, LabelShares


@pytest.mark.parametrize(
    "shares",
    [
        [0.5, 0.6],
        [0.5, 0.4],
        [1.5, -0.5],
        [0.0, 0.0],
        [math.nan, 1.0],
        [math.nan, math.nan],
        [math.inf, 0.0],
        [math.inf, -math.inf],
        [1.0, -1e-9],
        [1.0 + 2 * SUM_SLACK, 0.0],
    ],
    ids=str,
)
def test_refuses_invalid_shares(shares: list[float]):
    with pytest.raises(ClaimError, match="sum to 1"):
        LabelShares(torch.tensor(shares))


def test_refuses_a_number_of_verdicts_other_than_the_number_of_labels():
    with pytest.raises((ClaimError, TypeCheckError)):  # the latter in `make check-types`
        LabelShares(torch.tensor([0.5, 0.5]), torch.tensor([True]))


@pytest.mark.parametrize("weights", [[0.0, 0.0], [-1.0, -2.0], [math.nan, 1.0]], ids=str)
def test_weights_without_a_positive_sum_give_uniform_shares(weights: list[float]):
    assert normalize_to_shares(torch.tensor(weights)).tolist() == [0.5, 0.5]


@given(
    st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=20),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_any_weights_become_shares_of_the_same_type(weights: list[float], dtype: torch.dtype):
    given_weights = torch.tensor(weights, dtype=dtype)
    shares = normalize_to_shares(given_weights)
    assert LabelShares(shares).shares.dtype == dtype
    assert given_weights.tolist() == torch.tensor(weights, dtype=dtype).tolist()
