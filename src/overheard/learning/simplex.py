"""Functions that return shares: nonnegative numbers that sum to 1."""

import numpy as np
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
    return solve_each_for_shares(system[None], goal[None], weight)[0]


def solve_each_for_shares(
    systems: Float[Tensor, "systems equations parts"],
    goals: Float[Tensor, "systems equations"],
    weight: float = SUM_WEIGHT,
) -> Float[Tensor, "systems parts"]:
    """Solve one or more systems, as `solve_for_shares`."""
    sums = systems.new_full((len(systems), 1, systems.shape[2]), weight)
    all_systems = torch.cat([systems, sums], 1).numpy()
    all_goals = torch.cat([goals, sums[:, 0, :1]], 1).numpy()
    solved = [nnls(one, goal)[0] for one, goal in zip(all_systems, all_goals, strict=True)]
    return normalize_rows_to_shares(torch.from_numpy(np.stack(solved)))


def normalize_to_shares(weights: Float[Tensor, " classes"]) -> Float[Tensor, " classes"]:
    """Scale weights to shares. Negative weights count as 0; all 0 gives equal shares."""
    return normalize_rows_to_shares(weights[None])[0]


def normalize_rows_to_shares(
    weights: Float[Tensor, "rows classes"],
) -> Float[Tensor, "rows classes"]:
    """Scale each row of weights to shares, as `normalize_to_shares`."""
    clipped = weights.double().clamp(min=0)
    totals = clipped.sum(1, keepdim=True)
    shares = (clipped / totals).to(weights.dtype)
    return torch.where(totals > 0, shares, 1 / weights.shape[1])
