"""Synthetic examples, each with its own soft label and learning rate."""

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
class SyntheticExamples:
    """Synthetic examples in training order.

    The class also holds gradients with respect to them, and the sets of several clients, which
    are the first axis of each tensor.

    Args:
        inputs: inputs of the task, with the examples as first axis.
        labels: targets of the cross-entropy; distillation may move them off the simplex.
        rates: learning rates.

    """

    inputs: Float[Tensor, "..."]
    labels: Float[Tensor, "*clients examples classes"]
    rates: Float[Tensor, "*clients examples"]

    def __iter__(self) -> Iterator[Tensor]:
        """Iterate over inputs, labels and rates."""
        return iter((self.inputs, self.labels, self.rates))

    def map(self, change: Callable[[Tensor], Tensor]) -> "SyntheticExamples":
        """Apply one function to each tensor."""
        return SyntheticExamples(change(self.inputs), change(self.labels), change(self.rates))

    def is_finite(self) -> bool:
        """Return whether all numbers are finite."""
        return all(bool(one.isfinite().all()) for one in self)


def stack_sets(sets: Sequence[SyntheticExamples]) -> SyntheticExamples:
    """Stack the sets of several clients."""
    inputs, labels, rates = zip(*sets, strict=True)
    return SyntheticExamples(torch.stack(inputs), torch.stack(labels), torch.stack(rates))


def draw_noise_examples(
    task: Task, per_class: int, rate: float, seed: Seed
) -> SyntheticExamples:
    """Draw standard normal inputs, with one-hot labels of the classes in turn and one rate."""
    examples = per_class * task.classes
    inputs = torch.randn(examples, *task.shape, generator=seed.generator())
    classes = torch.arange(examples) % task.classes
    labels = one_hot(classes, task.classes).float()
    return SyntheticExamples(inputs, labels, torch.full((examples,), rate))
