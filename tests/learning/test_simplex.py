import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.learning.simplex import solve_for_shares


def test_finds_an_exact_solution():
    # (0.5, 0.3, 0.2) through a matrix of full rank.
    system = torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 3.0]]).double()
    goal = system @ torch.tensor([0.5, 0.3, 0.2]).double()
    assert solve_for_shares(system, goal).tolist() == pytest.approx([0.5, 0.3, 0.2], abs=1e-6)


def test_a_small_weight_of_the_sum_distorts_the_shares():
    # Least squares of (x - 0.1, y - 0.3, w (x + y - 1)) moves both x and y by
    # 0.6 w^2 / (1 + 2 w^2): 0.3 for a large w, and 0.2 for w = 1, where (0.3, 0.5), brought to
    # the sum 1, is (0.375, 0.625).
    system, goal = torch.eye(2, dtype=torch.float64), torch.tensor([0.1, 0.3]).double()
    assert solve_for_shares(system, goal).tolist() == pytest.approx([0.4, 0.6], abs=1e-5)
    light = solve_for_shares(system, goal, weight=1.0)
    assert light.tolist() == pytest.approx([0.375, 0.625])


def test_zero_equations_give_equal_shares():
    nothing, goal = torch.zeros(3, 2).double(), torch.ones(3).double()
    assert solve_for_shares(nothing, goal, weight=0.0).tolist() == [0.5, 0.5]


@given(seed=st.integers(0, 10**6), parts=st.integers(1, 6))
def test_no_other_shares_have_a_smaller_error(seed, parts):
    draws = Seed(seed)
    system, goal = torch.from_numpy(draws.numpy().normal(size=(4, parts + 1))).split(
        [parts, 1], 1
    )
    best = (system @ solve_for_shares(system, goal[:, 0]) - goal[:, 0]).norm()
    others = torch.from_numpy(draws.child("others").numpy().dirichlet([0.5] * parts, 100))
    missed = (others @ system.T - goal[:, 0]).norm(dim=1)
    # The row for the sum is next to an equality, and the sum brought to 1 afterwards.
    assert float(best) <= float(missed.min()) + 1e-4


@given(seed=st.integers(0, 10**6), parts=st.integers(1, 6))
def test_returns_shares_for_any_equations(seed, parts):
    draws = Seed(seed).generator()
    system = torch.randn(4, parts, generator=draws, dtype=torch.float64)
    shares = solve_for_shares(system, torch.randn(4, generator=draws, dtype=torch.float64))
    assert float(shares.min()) >= 0
    assert float(shares.sum()) == pytest.approx(1)
