"""Ridge regression."""

import torch
from jaxtyping import Float
from torch import Tensor


def fit_ridge(
    numbers: Float[Tensor, "readings numbers"],
    goal: Float[Tensor, "readings *goals"],
    penalty: Float[Tensor, " numbers"],
) -> Float[Tensor, "numbers *goals"]:
    """Minimize over w, for each goal: |numbers w - goal|^2 + sum over n of penalty_n w_n^2."""
    products = numbers.T @ numbers + penalty.diag()
    weights: Tensor = torch.linalg.solve(products, numbers.T @ goal)
    return weights
