"""What an attack may claim about its target: one class a question."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.errors import ClaimError

SUM_SLACK = 1e-4
"""How far shares in float32 may miss the sum of 1."""


class Claim(ABC):
    """An answer to one question about a target; its class names the question."""

    __slots__ = ()

    @abstractmethod
    def numbers(self) -> tuple[float, ...]:
        """The claim as plain numbers, for a record or a chart."""


@dataclass(frozen=True, slots=True)
class LabelShares(Claim):
    """Which share of the target's examples bears each label.

    Args:
        shares: each 0 or more, 1 together.
        absent: labels that the attack says the target does not hold at all; None where the
            attack makes no such statement (a share of 0 is then an estimate, no verdict).

    """

    shares: Float[Tensor, " classes"]
    absent: Bool[Tensor, " classes"] | None = None

    def __post_init__(self) -> None:
        """Refuse shares that are none."""
        total = float(self.shares.sum())
        # A NaN fails both comparisons, so it is refused too.
        if not (bool((self.shares >= 0).all()) and abs(total - 1) <= SUM_SLACK):
            raise ClaimError(
                f"label shares must be 0 or more and sum to 1, got {self.shares.tolist()}"
            )
        if self.absent is not None and self.absent.shape != self.shares.shape:
            raise ClaimError("`absent` must say one thing a label")

    def numbers(self) -> tuple[float, ...]:
        """The share of each label."""
        return tuple(self.shares.tolist())


def normalised(weights: Float[Tensor, " classes"]) -> Float[Tensor, " classes"]:
    """Turn weights into shares: negative ones count as 0; none at all means all alike."""
    clipped = weights.double().clamp(min=0)
    total = clipped.sum()
    if not bool(total > 0):
        return torch.full_like(weights, 1 / len(weights))
    return (clipped / total).to(weights.dtype)
