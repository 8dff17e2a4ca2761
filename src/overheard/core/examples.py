"""Labelled examples, the matter that clients learn from."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Examples:
    """Labelled examples: `inputs[i]` bears `labels[i]`.

    Inputs are float32 (images: channels x height x width, standardised; tables: columns)
    or int64 (texts: token numbers, padded with 0).
    """

    inputs: Shaped[Tensor, "examples ..."]
    labels: Int[Tensor, " examples"]

    def __post_init__(self) -> None:
        """Refuse inputs and labels of different lengths."""
        if len(self.inputs) != len(self.labels):
            raise ValueError(
                f"{len(self.inputs)} inputs and {len(self.labels)} labels: one label each"
            )

    def __len__(self) -> int:
        """How many examples there are."""
        return len(self.labels)

    def take(self, rows: Int[Tensor, " taken"] | Bool[Tensor, " examples"]) -> "Examples":
        """The examples in these rows, in this order."""
        return Examples(self.inputs[rows], self.labels[rows])

    def counts(self, classes: int) -> Int[Tensor, " classes"]:
        """How many examples bear each label."""
        return self.labels.bincount(minlength=classes)


def joined(parts: Sequence[Examples]) -> Examples:
    """The examples of all parts, one part after another."""
    return Examples(
        torch.cat([part.inputs for part in parts]), torch.cat([part.labels for part in parts])
    )
