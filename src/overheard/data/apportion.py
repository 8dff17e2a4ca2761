"""Divides a whole number of things by shares."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

ROUNDING = 1e-9
"""Distance below which a number of examples, in float64, counts as the one beside it."""


def apportion(weights: Float[Tensor, " parts"], total: int) -> Int[Tensor, " parts"]:
    """Divide `total` by these weights in whole numbers: the method of largest remainders.

    Each part gets its exact share rounded down or up; of equal remainders the first wins.

    >>> apportion(torch.tensor([0.5, 0.3, 0.2]), 9).tolist()
    [4, 3, 2]

    Raises:
        ValueError: if a weight is negative or all are 0.

    """
    exact = weights.double()
    if not bool((exact >= 0).all()) or not 0 < float(exact.sum()) < float("inf"):
        raise ValueError(f"weights are 0 or more and not all 0, got {weights.tolist()}")
    exact = exact / exact.sum() * total
    # Shares such as 0.1 * 30 miss a whole number by rounding only: they are that number.
    exact = torch.where((exact - exact.round()).abs() < ROUNDING, exact.round(), exact)
    floor = exact.floor()
    left = total - int(floor.sum())
    remainders = exact - floor
    first = torch.argsort(remainders, descending=True, stable=True)[:left]
    floor[first] += 1
    return floor.long()
