"""Brings numbers of different scales to one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

FLOOR = 1e-6
"""Spread beside the size of a number, below which only rounding moves it."""


@dataclass(frozen=True, slots=True)
class Standard:
    """Takes the mean off each number and divides by the spread, both of some examples.

    Numbers that do not differ among those examples tell nothing, and are made 0.
    """

    mean: Float[Tensor, "..."]
    spread: Float[Tensor, "..."]

    def of(self, numbers: Float[Tensor, "examples ..."]) -> Float[Tensor, "examples ..."]:
        """The same numbers on the common scale."""
        return (numbers - self.mean) / self.spread

    def tensors(self, name: str) -> dict[str, Tensor]:
        """All that was learned, under this name, for `from_tensors`."""
        return {f"{name}/mean": self.mean, f"{name}/spread": self.spread}

    @staticmethod
    def from_tensors(kept: Mapping[str, Tensor], name: str) -> "Standard":
        """What `tensors` gave under this name, as it was."""
        return Standard(kept[f"{name}/mean"], kept[f"{name}/spread"])


def standard_of(numbers: Float[Tensor, "examples ..."]) -> Standard:
    """Learn the scale of each number from these examples."""
    return _standard(numbers.mean(0), numbers.std(0, correction=0))


def standard_of_parts(parts: Iterable[Float[Tensor, "_examples ..."]]) -> Standard:
    """As `standard_of`, from examples that need not stand in memory together.

    Sums run in float64; the scale is given in float32.
    """
    count, total, squares = 0, torch.zeros(()), torch.zeros(())
    for part in parts:
        numbers = part.double()
        count += len(numbers)
        total, squares = total + numbers.sum(0), squares + numbers.square().sum(0)
    mean = total / count
    wide = _standard(mean, (squares / count - mean.square()).clamp(min=0).sqrt())
    return Standard(wide.mean.float(), wide.spread.float())


def _standard(mean: Tensor, spread: Tensor) -> Standard:
    # Divided by infinity, whatever a client shows there is 0.
    return Standard(mean, spread.where(spread > FLOOR * mean.abs(), torch.inf))
