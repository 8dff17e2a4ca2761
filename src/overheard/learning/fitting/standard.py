"""Standardization of features to mean 0 and standard deviation 1."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

FLOOR = 1e-6
"""Smallest standard deviation over absolute mean that is more than rounding."""


@dataclass(frozen=True, slots=True)
class Standard:
    """Means and standard deviations of features, by which it standardizes other examples.

    A feature that is constant in the fitted examples becomes 0.
    """

    mean: Float[Tensor, "..."]
    spread: Float[Tensor, "..."]

    def of(self, numbers: Float[Tensor, "examples ..."]) -> Float[Tensor, "examples ..."]:
        """Standardize numbers."""
        return (numbers - self.mean) / self.spread

    def tensors(self, name: str) -> dict[str, Tensor]:
        """Return the fitted tensors under this name, for `from_tensors`."""
        return {f"{name}/mean": self.mean, f"{name}/spread": self.spread}

    @staticmethod
    def from_tensors(kept: Mapping[str, Tensor], name: str) -> "Standard":
        """Restore the standardizer from the tensors that `tensors` returned."""
        return Standard(kept[f"{name}/mean"], kept[f"{name}/spread"])


def standard_of(numbers: Float[Tensor, "examples ..."]) -> Standard:
    """Fit mean and standard deviation of each feature."""
    return _standard(numbers.mean(0), numbers.std(0, correction=0))


def standard_of_parts(parts: Iterable[Float[Tensor, "_examples ..."]]) -> Standard:
    """Fit as `standard_of` does, to examples that need not fit into memory together.

    Sums are float64; the result is float32.
    """
    count, total, squares = 0, torch.zeros(()), torch.zeros(())
    for part in parts:
        numbers = part.double()
        count += len(numbers)
        total, squares = total + numbers.sum(0), squares + numbers.square().sum(0)
    mean = total / count
    double = _standard(mean, (squares / count - mean.square()).clamp(min=0).sqrt())
    return Standard(double.mean.float(), double.spread.float())


def _standard(mean: Tensor, spread: Tensor) -> Standard:
    # Dividing by infinity makes a constant feature 0 for every client.
    return Standard(mean, spread.where(spread > FLOOR * mean.abs(), torch.inf))
