"""Turns numbers into shares: 0 or more each, 1 together."""

import torch
from jaxtyping import Float
from scipy.optimize import nnls
from torch import Tensor

SUM_WEIGHT = 1e3
"""Weight of the row that makes shares sum to 1, for equations of order 1: next to an equality.
A row of weight 1 would be outvoted by the others."""


def shares_that_solve(
    system: Float[Tensor, "equations parts"],
    goal: Float[Tensor, " equations"],
    weight: float = SUM_WEIGHT,
) -> Float[Tensor, " parts"]:
    """The shares, 0 or more and of sum 1, by which the equations miss least (L2), in float64.

    Non-negative least squares (Lawson and Hanson 1974) with one more row for the sum.

    Args:
        system: in float64, as the goal.
        goal: its right-hand side.
        weight: of the row for the sum; far above all entries of the system.

    """
    heavy = system.new_full((1, system.shape[1]), weight)
    shares, _ = nnls(
        torch.cat([system, heavy]).numpy(), torch.cat([goal, heavy[0, :1]]).numpy()
    )
    return normalised(torch.from_numpy(shares))


def normalised(weights: Float[Tensor, " classes"]) -> Float[Tensor, " classes"]:
    """Turn weights into shares: negative ones count as 0; none at all means all alike."""
    clipped = weights.double().clamp(min=0)
    total = clipped.sum()
    if not bool(total > 0):
        return torch.full_like(weights, 1 / len(weights))
    return (clipped / total).to(weights.dtype)
