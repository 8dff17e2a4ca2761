"""Division of a whole number in proportion to weights."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

ROUNDING_TOLERANCE = 1e-9
"""A float64 number of examples closer than this to a whole number counts as that number."""


def apportion(weights: Float[Tensor, " parts"], total: int) -> Int[Tensor, " parts"]:
    """Divide `total` into whole numbers by these weights: the method of largest remainders.

    Each part gets its exact share, rounded down or up. Among equal remainders the first wins.

    >>> apportion(torch.tensor([0.5, 0.3, 0.2]), 9).tolist()
    [4, 3, 2]

    Raises:
        ValueError: if a weight is negative or all are 0.

    """
    return torch.from_numpy(apportion_array(weights.double().numpy(), total))


def apportion_array(
    weights: Float[np.ndarray, " parts"], total: int
) -> Int[np.ndarray, " parts"]:
    """Divide `total` as `apportion` does; a third of the time that torch takes for few parts.

    Raises:
        ValueError: if a weight is negative or all are 0.

    """
    whole = float(weights.sum())
    if not (weights >= 0).all() or not 0 < whole < float("inf"):
        raise ValueError(f"weights must be 0 or more and not all 0, got {weights.tolist()}")
    exact = weights / whole * total
    # Shares such as 0.1 * 30 miss a whole number only by rounding, so they count as it.
    nearest = exact.round()
    exact = np.where(np.abs(exact - nearest) < ROUNDING_TOLERANCE, nearest, exact)
    floor = np.floor(exact)
    left = total - int(floor.sum())
    if left:
        floor[np.argsort(floor - exact, kind="stable")[:left]] += 1
    return floor.astype(np.int64)
