"""Label shares and weights of clients, as given in a plan."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.errors import PlanError

SUM_TOLERANCE = 0.01
"""How far the sum of rounded shares may differ from 1 (percentages: 1 from 100)."""


def normalised_shares(numbers: Sequence[float], place: str) -> Float[Tensor, " classes"]:
    """Return these shares or percentages, scaled to sum to 1.

    Args:
        numbers: 0 or more each, with a sum of 1 or 100, give or take 1 %.
        place: where they come from, for the error message.

    Raises:
        PlanError: if they are neither shares nor percentages.

    """
    total = math.fsum(numbers)
    # NaN fails every comparison, so it is refused too.
    is_normalised = any(
        abs(total / expected - 1) <= SUM_TOLERANCE + 1e-9 for expected in (1, 100)
    )
    if not is_normalised or not all(number >= 0 for number in numbers):
        raise PlanError(
            f"{place} must be 0 or more each and sum to 1 or to 100, got {tuple(numbers)} "
            f"with sum {total:g}"
        )
    return torch.tensor([number / total for number in numbers], dtype=torch.float64)


def checked_weights(numbers: Sequence[float], place: str) -> Float[Tensor, " classes"]:
    """Return these label weights as a tensor; shares are multiplied by them.

    Args:
        numbers: 0 or more each, not all 0.
        place: where they come from, for the error message.

    Raises:
        PlanError: if they are not valid weights.

    """
    if not all(0 <= number < math.inf for number in numbers) or not any(numbers):
        raise PlanError(
            f"{place} must be 0 or more each and not all 0, got {tuple(numbers)}: give one "
            "weight per label, 1 for a label whose relative frequency is to stay"
        )
    return torch.tensor(numbers, dtype=torch.float64)
