"""No examples at all: only what the labels of a recorded run mean."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

import torch

from overheard.core.errors import DataError
from overheard.core.examples import Examples, without_classes
from overheard.core.task import Task, TaskKind
from overheard.data.dataset import Dataset, DataSource


@final
@dataclass(frozen=True, slots=True)
class NoExamples(DataSource):
    """No examples, for a recording without auxiliary examples: attackers hold none.

    Nobody can train or test on it. Attacks that need auxiliary examples are refused.

    Args:
        class_names: the meaning of each class, or of each output if there are no classes.
        shape: the shape of one input.
        vocabulary: number of tokens, padding included; None = inputs are numbers.
        task: what the model predicts of an example: a class, several labels, or numbers.

    """

    class_names: tuple[str, ...]
    shape: tuple[int, ...] = (1,)
    vocabulary: int | None = None
    task: TaskKind = "classification"

    name: ClassVar[str] = "no_examples"
    source: ClassVar[str] = "none"

    def load(self, folder: Path | None) -> Dataset:
        """Return one placeholder of zeros per class, which no plan can draw from.

        Raises:
            DataError: if there are fewer than two classes, no output, or a length below 1.

        """
        try:
            task = Task(self.shape, self.class_names, self.vocabulary, self.task)
        except ValueError as error:
            raise DataError(f"no_examples: {error}") from error
        dtype = torch.float32 if self.vocabulary is None else torch.int64
        inputs = torch.zeros(task.classes, *self.shape, dtype=dtype)
        placeholders = Examples(inputs, torch.arange(task.classes))
        if not task.has_classes:
            placeholders = without_classes(inputs, torch.zeros(1, task.outputs))
        return Dataset(placeholders, placeholders, task)
