import torch

from overheard.learning.fitting.ridge import fit_ridge


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
