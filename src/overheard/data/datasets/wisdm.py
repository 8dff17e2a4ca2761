"""WISDM: activities of people, from the accelerometer of a phone in their pocket."""

from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal, final

import numpy as np
import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from overheard.core.examples import Examples, without_classes
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset, DataSource
from overheard.data.holdout import hold_out_of_users
from overheard.data.reading.float_labels import standardise_numbers
from overheard.data.reading.folder import require_file
from overheard.data.reading.tables import (
    categorical_column,
    encode_columns,
    integer_column,
    read_table,
    require_columns,
)

if TYPE_CHECKING:  # pandas is large, and most audits read no table
    import pandas

CLASS_NAMES = ("Downstairs", "Jogging", "Sitting", "Standing", "Upstairs", "Walking")

FEATURES = (*map(str, range(10)), "AVG", "PEAK", "ABSOLDEV", "STANDDEV")
"""Features of an axis in a window of ten seconds: a histogram of ten bins, four others."""

RESULTANT = "RESULTANT"

COLUMNS = (
    *(f"{axis}{figure}" for axis in "XYZ" for figure in FEATURES[:10]),
    *(f"{axis}{figure}" for figure in FEATURES[10:] for axis in "XYZ"),
    RESULTANT,
)
"""All feature columns in the order of the file; RESULTANT is the length over all axes."""

MOVEMENTS = ("upright", "moving", "climbing stairs")

MOVEMENTS_OF = MappingProxyType(
    {
        "Downstairs": (1, 1, 1),
        "Jogging": (1, 1, 0),
        "Sitting": (0, 0, 0),
        "Standing": (1, 0, 0),
        "Upstairs": (1, 1, 1),
        "Walking": (1, 1, 0),
    }
)
"""Which of the labels of the task "movements" apply to each activity."""

HOLDOUT_SEED = Seed(5418)
"""Fixed, so that the test part does not depend on the seed of a run."""

DUPLICATE_COLUMN = "ZSTANDDEV"
"""In the published file, a copy of XSTANDDEV, and so not a feature of the Z axis."""

UNREAD_AXES = MappingProxyType({"x": "yz", "yz": "x"})
"""The axes that a model does not read."""


@final
@dataclass(frozen=True, slots=True)
class Wisdm(DataSource):
    """User = person; a random fifth of each user's rows is the test part.

    The fifth is random, since rows are grouped by activity: the last ones would not have all
    activities. Missing cells are replaced by the training mean of their column. Times are row
    numbers of the file.

    Args:
        axes: the accelerometer axes that the model reads. With "x" or "yz", the columns of the
            other axes are the embedding of each example: a second modality of the same
            movement. RESULTANT, which is of all axes, and ZSTANDDEV, which in the published
            file is a copy of XSTANDDEV, are then left out of both.
        task: "activity": the label is one of six activities. "movements": for each activity
            several labels apply or none (multi-label): the person is upright, moves, climbs
            stairs. "acceleration": the mean acceleration over all axes, RESULTANT, is predicted
            from the other columns (regression), in deviations from its mean.

    """

    axes: Literal["xyz", "x", "yz"] = "xyz"
    task: Literal["activity", "movements", "acceleration"] = "activity"

    name: ClassVar[str] = "wisdm"
    source: ClassVar[str] = (
        "Kwapisz, Weiss, Moore 2010, WISDM activity prediction v1.1, transformed; free for "
        "research with citation"
    )

    def load(self, folder: Path | None) -> Dataset:
        """Read `wisdm/wisdm_windows.csv.gz`; no download in this form."""
        path = require_file(folder, ("wisdm/wisdm_windows.csv.gz",), self.source)
        table = read_table(path)
        require_columns(path, table, COLUMNS)
        users = categorical_column(path, table, "user")
        is_test = hold_out_of_users(users.numbers, HOLDOUT_SEED)
        columns = _columns(self.axes)
        if self.task == "acceleration":
            columns = tuple(column for column in columns if column != RESULTANT)
        features = table[list(columns)]
        inputs = encode_columns(path, features, features[(~is_test).numpy()])
        embeddings = None
        if self.axes != "xyz":
            other_features = table.loc[
                (~is_test).numpy(), list(_columns(UNREAD_AXES[self.axes]))
            ]
            embeddings = encode_columns(path, other_features, other_features)
        examples = self._examples(path, table, inputs, is_test)
        return Dataset(
            examples.take(~is_test),
            examples.take(is_test),
            self._task((inputs.shape[1],)),
            users.numbers[~is_test],
            users.names,
            times=(~is_test).nonzero().flatten(),
            embeddings=embeddings,
        )

    def _examples(
        self,
        path: Path,
        table: "pandas.DataFrame",
        inputs: Float32[Tensor, "examples columns"],
        is_test: Bool[Tensor, " examples"],
    ) -> Examples:
        """Return all examples with the labels of the task."""
        if self.task == "acceleration":
            numbers = torch.from_numpy(table[[RESULTANT]].to_numpy(np.float32, copy=True))
            return without_classes(inputs, standardise_numbers(numbers, is_test))
        labels = torch.from_numpy(integer_column(path, table, "label", len(CLASS_NAMES)))
        if self.task == "activity":
            return Examples(inputs, labels)
        applies = torch.tensor([MOVEMENTS_OF[name] for name in CLASS_NAMES])
        return without_classes(inputs, applies[labels].float())

    def _task(self, shape: tuple[int, ...]) -> Task:
        match self.task:
            case "activity":
                return Task(shape, CLASS_NAMES)
            case "movements":
                return Task(shape, MOVEMENTS, kind="multi_label")
            case "acceleration":
                return Task(shape, ("mean acceleration",), kind="regression")


def _columns(axes: str) -> tuple[str, ...]:
    if axes == "xyz":
        return COLUMNS
    columns = (f"{axis}{figure}" for axis in axes.upper() for figure in FEATURES)
    return tuple(column for column in columns if column != DUPLICATE_COLUMN)
