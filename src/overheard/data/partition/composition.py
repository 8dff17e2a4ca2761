"""What shares and weights of the labels a plan may give a client."""

import math
from collections.abc import Collection, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.errors import PlanError

ROUNDED = 0.01
"""How far the sum of published, rounded shares may miss 1 (percentages: 100 by 1)."""


def shares_of(numbers: Sequence[float], place: str) -> Float[Tensor, " classes"]:
    """These shares or percentages as shares that sum to 1.

    Args:
        numbers: 0 or more each; 1 or 100 together, give or take 1 %.
        place: where they stand, for the message.

    Raises:
        PlanError: if they are neither shares nor percentages.

    """
    total = math.fsum(numbers)
    # A NaN fails every comparison, so it is refused too.
    sums = any(abs(total / whole - 1) <= ROUNDED + 1e-9 for whole in (1, 100))
    if not sums or not all(number >= 0 for number in numbers):
        raise PlanError(
            f"{place} must be 0 or more each and sum to 1 or to 100, got {tuple(numbers)} "
            f"with sum {total:g}"
        )
    return torch.tensor([number / total for number in numbers], dtype=torch.float64)


def weights_of(numbers: Sequence[float], place: str) -> Float[Tensor, " classes"]:
    """These weights of the labels, by which shares are multiplied.

    Args:
        numbers: 0 or more each, not all 0.
        place: where they stand, for the message.

    Raises:
        PlanError: if they are no weights.

    """
    if not all(0 <= number < math.inf for number in numbers) or not any(numbers):
        raise PlanError(
            f"{place} must be 0 or more each and not all 0, got {tuple(numbers)}: give one a "
            "label, 1 for a label that is to stay as frequent beside the others"
        )
    return torch.tensor(numbers, dtype=torch.float64)


def ratio_shares(classes: int, group: Collection[int], share: float) -> tuple[float, ...]:
    """Shares that give a group of labels one share, evenly, and the other labels the rest.

    >>> ratio_shares(4, (0, 2), 0.75)
    (0.375, 0.125, 0.375, 0.125)

    Raises:
        PlanError: if the group is empty, holds every label or what is no label, or the share
            does not lie in 0..1.

    """
    inside = frozenset(group)
    if not inside or not inside < frozenset(range(classes)) or not 0 <= share <= 1:
        raise PlanError(
            f"a ratio needs some of the labels 0..{classes - 1} and a share in 0..1, got "
            f"{sorted(inside)} and {share}"
        )
    rest = classes - len(inside)
    return tuple(
        share / len(inside) if label in inside else (1 - share) / rest
        for label in range(classes)
    )
