"""Synthetic examples, each with a soft label and a learning rate of its own."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from overheard.core.seeds import Seed
from overheard.core.task import Task


@final
@dataclass(frozen=True, slots=True, eq=False)
class Synthetic:
    """Examples in the order in which they are learned from.

    What is said of them holds of slopes after them too, and of several members' sets: each
    tensor then has the members as first axis.

    Args:
        inputs: as the task's, the examples first.
        labels: targets of the cross-entropy. They are free numbers: distillation may take them
            off the simplex.
        rates: step sizes.

    """

    inputs: Float[Tensor, "..."]
    labels: Float[Tensor, "*members examples classes"]
    rates: Float[Tensor, "*members examples"]

    def __iter__(self) -> Iterator[Tensor]:
        """Inputs, labels, rates."""
        return iter((self.inputs, self.labels, self.rates))

    def map(self, change: Callable[[Tensor], Tensor]) -> "Synthetic":
        """The same change of each tensor."""
        return Synthetic(change(self.inputs), change(self.labels), change(self.rates))

    def is_finite(self) -> bool:
        """Whether all of it is numbers."""
        return all(bool(one.isfinite().all()) for one in self)


def stack(sets: Sequence[Synthetic]) -> Synthetic:
    """Sets of several members as one."""
    inputs, labels, rates = zip(*sets, strict=True)
    return Synthetic(torch.stack(inputs), torch.stack(labels), torch.stack(rates))


def noise(task: Task, per_class: int, rate: float, seed: Seed) -> Synthetic:
    """Standard normal inputs with one-hot labels, the classes in turn, all with one rate."""
    examples = per_class * task.classes
    inputs = torch.randn(examples, *task.shape, generator=seed.generator())
    classes = torch.arange(examples) % task.classes
    labels = one_hot(classes, task.classes).float()
    return Synthetic(inputs, labels, torch.full((examples,), rate))
