"""The learning task: the shape of an input, and what is predicted of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Literal

TaskKind = Literal["classification", "multi_label", "regression", "language_modeling"]
"""What a model predicts of an example.

"classification": one of several classes. "multi_label": for each of several labels, whether it
applies. "regression": one number or more. "language_modeling": each token of a text from those
before it, as a causal language model does; the output for a text is its mean loss.
"""

Utility = Literal[
    "accuracy", "label accuracy", "explained variance", "probability of the next token"
]
"""How well a trained model does its task, as a share from 0 to 1; see `learning.evaluate`."""

UTILITIES: Mapping[TaskKind, Utility] = MappingProxyType(
    {
        "classification": "accuracy",
        "multi_label": "label accuracy",
        "regression": "explained variance",
        "language_modeling": "probability of the next token",
    }
)
"""The utility that is measured in each kind of task."""

OUTPUTS_OF: Mapping[TaskKind, str] = MappingProxyType(
    {
        "classification": "classes",
        "multi_label": "labels",
        "regression": "numbers to predict",
        "language_modeling": "losses of a text",
    }
)
"""What the outputs of a model stand for."""


MAX_OUTPUTS = 2**18
"""The most outputs of a model, such as the words that it may predict."""

MAX_AXES = 8
"""The most axes of an input."""

MAX_NUMBERS = 2**31
"""The most numbers of an input."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a model architecture must know of the data.

    Args:
        shape: the shape of one input: (channels, height, width), (columns,) or, for texts,
            (tokens,).
        class_names: the meaning of each output of the model, in order; public. These are the
            classes, the labels of which any may apply, or the numbers of a regression.
        vocabulary: number of tokens, padding (0) included; None where inputs are numbers.
        kind: what is predicted of an example.

    """

    shape: tuple[int, ...]
    class_names: tuple[str, ...]
    vocabulary: int | None = None
    kind: TaskKind = "classification"

    def __post_init__(self) -> None:
        """Check that there are 2 classes or more, or an output, and that inputs have values."""
        if self.has_classes and len(self.class_names) < 2:
            raise ValueError(f"a task needs 2 classes or more, got {self.class_names}")
        if not self.class_names:
            raise ValueError("a task needs a name for each output, one or more, got none")
        if self.kind == "language_modeling" and self.vocabulary is None:
            raise ValueError("language_modeling needs tokens: give the size of the vocabulary")
        if self.kind == "language_modeling" and len(self.class_names) != 1:
            raise ValueError(
                f"language_modeling has one output, the loss of a text, got {self.class_names}"
            )
        if len(self.class_names) > MAX_OUTPUTS:
            count = len(self.class_names)
            raise ValueError(f"a task has at most {MAX_OUTPUTS} outputs, got {count}")
        if len(self.shape) > MAX_AXES:
            raise ValueError(f"a shape has at most {MAX_AXES} axes, got {len(self.shape)}")
        if not self.shape or min(self.shape) < 1:
            raise ValueError(f"the lengths of a shape must be 1 or more, got {self.shape}")
        if prod(self.shape) > MAX_NUMBERS:
            raise ValueError(f"an input has at most {MAX_NUMBERS} numbers, got {self.shape}")
        if self.vocabulary is not None and self.vocabulary < 1:
            raise ValueError(f"a vocabulary has 1 token or more, got {self.vocabulary}")

    @property
    def has_classes(self) -> bool:
        """Whether each example is of one class."""
        return self.kind == "classification"

    @property
    def classes(self) -> int:
        """The number of classes; 1 if examples have none, since all are then alike."""
        return len(self.class_names) if self.has_classes else 1

    @property
    def outputs(self) -> int:
        """The number of outputs of a model for one example."""
        return len(self.class_names)
