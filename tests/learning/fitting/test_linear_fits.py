"""Linear fits and the standardization before them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.learning.fitting.ridge import fit_ridge
from overheard.learning.fitting.standardizer import (
    fit_standardizer,
    fit_standardizer_to_parts,
)


def test_a_penalty_shrinks_only_its_own_weight():
    numbers = torch.eye(2, dtype=torch.float64)
    goal = torch.tensor([6.0, 6.0], dtype=torch.float64)
    # 6 / (1 + 2) where the penalty is 2, and 6 where there is none.
    weights = fit_ridge(numbers, goal, torch.tensor([2.0, 0.0], dtype=torch.float64))
    assert weights.tolist() == [2, 6]


def test_equal_penalties_give_the_bits_of_a_scaled_identity():
    generator = torch.Generator().manual_seed(0)
    numbers = torch.randn(50, 7, generator=generator, dtype=torch.float64)
    goal = torch.randn(50, generator=generator, dtype=torch.float64)
    eye = torch.eye(7, dtype=torch.float64)
    plain = torch.linalg.solve(numbers.T @ numbers + 1e-3 * 50 * eye, numbers.T @ goal)
    penalty = torch.full((7,), 1e-3 * 50, dtype=torch.float64)
    assert fit_ridge(numbers, goal, penalty).equal(plain)


def test_subtracts_the_mean_and_divides_by_the_deviation():
    # Mean 3, deviations -2, 0, 2: spread sqrt(8 / 3) = 1.63299; 2 / 1.63299 = 1.22474.
    numbers = torch.tensor([[1.0], [3.0], [5.0]])
    torch.testing.assert_close(
        fit_standardizer(numbers).standardize(numbers),
        torch.tensor([[-1.22474], [0.0], [1.22474]]),
    )


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_a_feature_that_was_constant_in_the_fit_becomes_0(constant, later):
    standard = fit_standardizer(torch.full((5, 2), constant))
    assert standard.standardize(torch.full((1, 2), later)).abs().max() == 0


@pytest.mark.parametrize("size", [1, 7, 30])
def test_fitting_to_parts_equals_fitting_to_all(size):
    numbers = 5 + 0.01 * torch.randn(30, 2, generator=Seed(0).generator())
    whole, parts = (
        fit_standardizer(numbers),
        fit_standardizer_to_parts(iter(numbers.split(size))),
    )
    torch.testing.assert_close(parts.mean, whole.mean)
    torch.testing.assert_close(parts.deviation, whole.deviation, rtol=1e-4, atol=0)


def test_a_feature_that_is_constant_in_all_parts_becomes_0():
    standard = fit_standardizer_to_parts([torch.full((3, 1), 0.1), torch.full((4, 1), 0.1)])
    assert float(standard.standardize(torch.tensor([[7.0]]))) == 0
