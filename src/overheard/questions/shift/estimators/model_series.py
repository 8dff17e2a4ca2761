"""A number by round, read from a target's models of that round and of those before it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import final

from torch import Tensor

from overheard.core.messages import Weights

ReadModels = Callable[[Iterable[Weights]], Iterator[Tensor]]
"""Reads a tensor from each model, in order."""

CompareTensors = Callable[[Sequence[Tensor]], float]
"""Returns a number from the tensors of consecutive rounds, the earliest first."""


@final
@dataclass(frozen=True, slots=True)
class ModelComparison:
    """How a number by round is read from models.

    Args:
        read: reads a tensor from each model.
        compare: returns the number of a round from the tensors of this round and of those
            before it.
        models: how many models a number needs, that of its round included.

    """

    read: ReadModels
    compare: CompareTensors
    models: int

    def series(self, rounds: Iterable[int], models: Iterable[Weights]) -> dict[int, float]:
        """Return the finite numbers by round; rounds after a gap lack models before them.

        Args:
            rounds: the rounds of the models, in order.
            models: the models, read lazily.

        """
        latest, values = RecentTensors(self), dict[int, float]()
        for number, tensor in zip(rounds, self.read(models), strict=True):
            value = latest.add(number, tensor)
            if value is not None and isfinite(value):
                values[number] = value
        return values


@final
class RecentTensors:
    """The tensors of a target's latest consecutive rounds."""

    def __init__(self, comparison: ModelComparison) -> None:
        self._comparison = comparison
        self._tensors = deque[Tensor](maxlen=comparison.models)
        self._latest = -1

    def add(self, number: int, tensor: Tensor) -> float | None:
        """Add the tensor of a round; return its number, or None while models are missing."""
        if number != self._latest + 1:
            self._tensors.clear()
        self._latest = number
        self._tensors.append(tensor)
        if len(self._tensors) < self._comparison.models:
            return None
        return self._comparison.compare(tuple(self._tensors))
