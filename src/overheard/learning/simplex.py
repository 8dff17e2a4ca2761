"""Functions that return shares: nonnegative numbers that sum to 1."""

import torch
from jaxtyping import Float
from scipy.optimize import nnls
from torch import Tensor

SUM_WEIGHT = 1e3
"""Weight of the equation that makes shares sum to 1, for other equations of order 1. It is so
large that the sum is almost an equality constraint."""


def solve_for_shares(
    system: Float[Tensor, "equations parts"],
    goal: Float[Tensor, " equations"],
    weight: float = SUM_WEIGHT,
) -> Float[Tensor, " parts"]:
    """Solve for the shares with the least squared error of the equations, in float64.

    Non-negative least squares (Lawson and Hanson 1974) with one more row for the sum.

    Args:
        system: coefficients, in float64.
        goal: right-hand side of the equations, in float64.
        weight: weight of the row for the sum; far above all entries of the system.

    """
    sum_row = system.new_full((1, system.shape[1]), weight)
    shares, _ = nnls(
        torch.cat([system, sum_row]).numpy(), torch.cat([goal, sum_row[0, :1]]).numpy()
    )
    return normalize_to_shares(torch.from_numpy(shares))


def normalize_to_shares(weights: Float[Tensor, " classes"]) -> Float[Tensor, " classes"]:
    """Scale weights to shares. Negative weights count as 0; all 0 gives equal shares."""
    clipped = weights.double().clamp(min=0)
    total = float(clipped.sum())
    if not total > 0:
        return torch.full_like(weights, 1 / len(weights))
    return (clipped / total).to(weights.dtype)
