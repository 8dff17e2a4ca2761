"""Weights that are computed from others, one tensor at a time, when they are accessed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from torch import Tensor

from overheard.core.messages import Weights


@final
@dataclass(frozen=True, slots=True, eq=False)
class LinearCombination(Mapping[str, Tensor]):
    """A sum of weights with factors, in float64, then rounded to the type of the first.

    Args:
        parts: the weights; all have the tensors of the first.
        factors: the factor of each.

    """

    parts: Sequence[Weights]
    factors: Sequence[float]

    def __getitem__(self, name: str) -> Tensor:
        """Compute one tensor."""
        first = self.parts[0][name]
        total = first.double() * self.factors[0]
        for part, factor in zip(self.parts[1:], self.factors[1:], strict=True):
            total += part[name].double() * factor
        return total.to(first.dtype)

    def __contains__(self, name: object) -> bool:
        """Return whether there is such a tensor; computes nothing."""
        return name in self.parts[0]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names in the order of the first part."""
        return iter(self.parts[0])

    def __len__(self) -> int:
        """Return the number of tensors."""
        return len(self.parts[0])


def scaled(weights: Weights, factor: float) -> Weights:
    """Return the weights times a factor."""
    return LinearCombination((weights,), (factor,))
