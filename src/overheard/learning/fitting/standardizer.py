"""Standardization of features to mean 0 and standard deviation 1."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

RELATIVE_FLOOR = 1e-6
"""Smallest standard deviation over absolute mean that is more than rounding."""


@dataclass(frozen=True, slots=True)
class Standardizer:
    """Means and standard deviations of features, by which it standardizes other examples.

    A feature that is constant in the fitted examples becomes 0.
    """

    mean: Float[Tensor, "..."]
    deviation: Float[Tensor, "..."]

    def standardize(
        self, numbers: Float[Tensor, "examples ..."]
    ) -> Float[Tensor, "examples ..."]:
        """Standardize numbers."""
        return (numbers - self.mean) / self.deviation

    def tensors(self, name: str) -> dict[str, Tensor]:
        """Return the fitted tensors under this name, for `from_tensors`."""
        return {f"{name}/mean": self.mean, f"{name}/spread": self.deviation}

    @staticmethod
    def from_tensors(stored: Mapping[str, Tensor], name: str) -> "Standardizer":
        """Restore the standardizer from the tensors that `tensors` returned."""
        return Standardizer(stored[f"{name}/mean"], stored[f"{name}/spread"])


def fit_standardizer(numbers: Float[Tensor, "examples ..."]) -> Standardizer:
    """Fit mean and standard deviation of each feature."""
    return _build_standardizer(numbers.mean(0), numbers.std(0, correction=0))


def fit_standardizer_to_parts(parts: Iterable[Float[Tensor, "_examples ..."]]) -> Standardizer:
    """Fit as `fit_standardizer` does, to examples that need not fit into memory together.

    Sums are float64; the result is float32.
    """
    count, total, squares = 0, torch.zeros(()), torch.zeros(())
    for part in parts:
        numbers = part.double()
        count += len(numbers)
        total, squares = total + numbers.sum(0), squares + numbers.square().sum(0)
    mean = total / count
    double = _build_standardizer(mean, (squares / count - mean.square()).clamp(min=0).sqrt())
    return Standardizer(double.mean.float(), double.deviation.float())


def _build_standardizer(mean: Tensor, spread: Tensor) -> Standardizer:
    # Dividing by infinity makes a constant feature 0 for every client.
    return Standardizer(mean, spread.where(spread > RELATIVE_FLOOR * mean.abs(), torch.inf))
