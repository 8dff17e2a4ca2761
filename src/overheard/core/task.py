"""The learning task: the shape of an input and the labels."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Task:
    """What a model architecture must know of the data.

    Args:
        shape: the shape of one input: (channels, height, width), (columns,) or, for texts,
            (tokens,).
        class_names: the meaning of each label, in order; public.
        vocabulary: number of tokens, padding (0) included; None where inputs are numbers.

    """

    shape: tuple[int, ...]
    class_names: tuple[str, ...]
    vocabulary: int | None = None

    def __post_init__(self) -> None:
        """Check that there are 2 classes or more and that inputs are not empty."""
        if len(self.class_names) < 2:
            raise ValueError(f"a task needs 2 classes or more, got {self.class_names}")
        if not self.shape or min(self.shape) < 1:
            raise ValueError(f"the lengths of a shape must be 1 or more, got {self.shape}")

    @property
    def classes(self) -> int:
        """The number of labels."""
        return len(self.class_names)
