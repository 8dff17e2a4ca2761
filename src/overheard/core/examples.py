"""Labelled examples: the data that clients train on."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from overheard.core.seeds import Seed


@dataclass(frozen=True, slots=True)
class Examples:
    """Labelled examples: `inputs[i]` has the label `labels[i]`.

    Inputs are float32 (images: channels x height x width, standardised; tables: columns)
    or int64 (texts: token numbers, padded with 0).

    Args:
        inputs: the inputs.
        labels: the class of each example; 0 everywhere in a task without classes.
        float_labels: in a task without classes, the numbers of each example: 0 or 1 for each
            label that may apply, or the numbers of a regression. None = a task with classes.

    """

    inputs: Shaped[Tensor, "examples ..."]
    labels: Int[Tensor, " examples"]
    float_labels: Float[Tensor, "examples outputs"] | None = None

    def __post_init__(self) -> None:
        """Check that there is one label per input."""
        given = len(self.labels if self.float_labels is None else self.float_labels)
        if not len(self.inputs) == len(self.labels) == given:
            raise ValueError(
                f"got {len(self.inputs)} inputs and {given} labels: give one label per input"
            )

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.labels)

    @property
    def loss_labels(self) -> Shaped[Tensor, "examples ..."]:
        """What a training loss compares outputs with: classes, or the numbers instead."""
        return self.labels if self.float_labels is None else self.float_labels

    def tensors(self) -> tuple[Tensor, ...]:
        """Return all tensors, in the order of the fields."""
        given = () if self.float_labels is None else (self.float_labels,)
        return (self.inputs, self.labels, *given)

    def take(self, rows: Int[Tensor, " taken"] | Bool[Tensor, " examples"]) -> "Examples":
        """Return the examples in these rows, in this order."""
        return Examples(*(tensor[rows] for tensor in self.tensors()))

    def sample(self, count: int | None, seed: Seed) -> "Examples":
        """Return this many examples, drawn at random; all, in order, if there are no more."""
        if count is None or count >= len(self):
            return self
        return self.take(torch.randperm(len(self), generator=seed.generator())[:count])

    def to(self, device: torch.device | str) -> "Examples":
        """Return the examples on this device."""
        return Examples(*(tensor.to(device) for tensor in self.tensors()))

    def label_counts(self, classes: int) -> Int[Tensor, " classes"]:
        """Return the number of examples of each label."""
        return self.labels.bincount(minlength=classes)


def concatenate_examples(parts: Sequence[Examples]) -> Examples:
    """Concatenate examples of one task in order."""
    columns = zip(*(part.tensors() for part in parts), strict=True)
    return Examples(*(torch.cat(column) for column in columns))


def without_classes(
    inputs: Shaped[Tensor, "examples ..."], float_labels: Float[Tensor, "examples outputs"]
) -> Examples:
    """Return examples of a task without classes."""
    labels = torch.zeros(len(inputs), dtype=torch.int64, device=inputs.device)
    return Examples(inputs, labels, float_labels)
