"""No examples at all: only what the labels of a recorded run mean."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

import torch

from overheard.core.errors import DataError
from overheard.core.examples import Examples
from overheard.core.task import Task
from overheard.data.dataset import Dataset, DataSource


@final
@dataclass(frozen=True, slots=True)
class NoExamples(DataSource):
    """No examples, for a recording without auxiliary examples: attackers hold none.

    Nobody can train or test on it. Attacks that need auxiliary examples are refused.

    Args:
        class_names: the meaning of each label.
        shape: the shape of one input.
        vocabulary: number of tokens, padding included; None = inputs are numbers.

    """

    class_names: tuple[str, ...]
    shape: tuple[int, ...] = (1,)
    vocabulary: int | None = None

    name: ClassVar[str] = "no_examples"
    source: ClassVar[str] = "none"

    def load(self, folder: Path | None) -> Dataset:
        """Return one placeholder of zeros per class, which no plan can draw from.

        Raises:
            DataError: if there are fewer than two classes, or a length below 1.

        """
        try:
            task = Task(self.shape, self.class_names, self.vocabulary)
        except ValueError as error:
            raise DataError(f"no_examples: {error}") from error
        dtype = torch.float32 if self.vocabulary is None else torch.int64
        inputs = torch.zeros(task.classes, *self.shape, dtype=dtype)
        placeholders = Examples(inputs, torch.arange(task.classes))
        return Dataset(placeholders, placeholders, task)
