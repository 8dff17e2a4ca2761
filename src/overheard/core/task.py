"""The learning task: the shape of an input, and what is predicted of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType
from typing import Literal

TaskKind = Literal["classification", "multi_label", "regression"]
"""What a model predicts of an example.

"classification": one of several classes. "multi_label": for each of several labels, whether it
applies. "regression": one number or more.
"""

Utility = Literal["accuracy", "label accuracy", "explained variance"]
"""How well a trained model does its task, as a share from 0 to 1; see `learning.evaluate`."""

UTILITIES: Mapping[TaskKind, Utility] = MappingProxyType(
    {
        "classification": "accuracy",
        "multi_label": "label accuracy",
        "regression": "explained variance",
    }
)
"""The utility that is measured in each kind of task."""

OUTPUTS_OF: Mapping[TaskKind, str] = MappingProxyType(
    {"classification": "classes", "multi_label": "labels", "regression": "numbers to predict"}
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


@dataclass(frozen=True, slots=True)
class TokenWords:
    """Which word each token of a text stands for.

    Args:
        tokens: number of tokens, with those that are no words.
        first: the first token that is a word; those before it are padding and unknown words.
        words: the word of each token from `first` on; () = not known.
        first_label: the token of label 0, where labels are words, as in next-word prediction;
            label i is the token i after it. None = labels are no words.

    """

    tokens: int
    first: int = 1
    words: tuple[str, ...] = field(default=(), repr=False)
    first_label: int | None = None

    def __post_init__(self) -> None:
        """Check that there are words, and as many names if any."""
        if not 0 <= self.first < self.tokens:
            raise ValueError(
                f"the first word must be one of {self.tokens} tokens, got {self.first}"
            )
        if self.words and len(self.words) != len(self):
            raise ValueError(f"{len(self.words)} words for {len(self)} tokens: give one each")

    def __len__(self) -> int:
        """Return the number of words."""
        return self.tokens - self.first

    def names(self) -> tuple[str, ...]:
        """Return the word of each token, or its number where words are not known."""
        return self.words or tuple(f"word {number}" for number in range(1, len(self) + 1))


def words_of_task(task: Task) -> TokenWords | None:
    """Return what follows from a task alone on its words; None if inputs are no texts.

    Padding is the only token known to be no word. If there are as many labels as tokens, labels
    are taken for the next token.
    """
    if task.vocabulary is None:
        return None
    first_label = 0 if task.classes == task.vocabulary else None
    return TokenWords(task.vocabulary, min(1, task.vocabulary - 1), first_label=first_label)
