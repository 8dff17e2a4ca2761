"""What the federation learns: the shape of an example and the labels it may bear."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Task:
    """All that an architecture must know of the data.

    Args:
        shape: of one input: (channels, height, width), (columns,) or, for texts, (tokens,).
        class_names: what label i means; public, in order of the labels.
        vocabulary: number of tokens, padding (0) included; None where inputs are numbers.

    """

    shape: tuple[int, ...]
    class_names: tuple[str, ...]
    vocabulary: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be learned."""
        if len(self.class_names) < 2:
            raise ValueError(f"a task has 2 classes or more, got {self.class_names}")
        if not self.shape or min(self.shape) < 1:
            raise ValueError(f"an input has positive lengths, got shape {self.shape}")

    @property
    def classes(self) -> int:
        """How many labels there are."""
        return len(self.class_names)
