"""Labelled examples: the data that clients train on."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Examples:
    """Labelled examples: `inputs[i]` has the label `labels[i]`.

    Inputs are float32 (images: channels x height x width, standardised; tables: columns)
    or int64 (texts: token numbers, padded with 0).
    """

    inputs: Shaped[Tensor, "examples ..."]
    labels: Int[Tensor, " examples"]

    def __post_init__(self) -> None:
        """Check that there is one label per input."""
        if len(self.inputs) != len(self.labels):
            raise ValueError(
                f"got {len(self.inputs)} inputs and {len(self.labels)} labels: give one label "
                "per input"
            )

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.labels)

    def take(self, rows: Int[Tensor, " taken"] | Bool[Tensor, " examples"]) -> "Examples":
        """Return the examples in these rows, in this order."""
        return Examples(self.inputs[rows], self.labels[rows])

    def label_counts(self, classes: int) -> Int[Tensor, " classes"]:
        """Return the number of examples of each label."""
        return self.labels.bincount(minlength=classes)


def concatenate_examples(parts: Sequence[Examples]) -> Examples:
    """Concatenate examples in order."""
    return Examples(
        torch.cat([part.inputs for part in parts]), torch.cat([part.labels for part in parts])
    )
