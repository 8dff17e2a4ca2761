"""What people with a phone in the pocket are doing, from its accelerometer."""

from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Literal, final

import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset, DataSource
from overheard.data.holdout import SHARE, stratified
from overheard.data.reading.folder import need_file
from overheard.data.reading.tables import (
    encoded,
    need_columns,
    numbered,
    read_table,
    whole_numbers,
)

CLASS_NAMES = ("Downstairs", "Jogging", "Sitting", "Standing", "Upstairs", "Walking")

FIGURES = (*map(str, range(10)), "AVG", "PEAK", "ABSOLDEV", "STANDDEV")
"""Of an axis in a window of ten seconds: a histogram of ten bins, and four figures."""

COLUMNS = (
    *(f"{axis}{figure}" for axis in "XYZ" for figure in FIGURES[:10]),
    *(f"{axis}{figure}" for figure in FIGURES[10:] for axis in "XYZ"),
    "RESULTANT",
)
"""All of them as the file has them, and the length of the acceleration, of all three axes."""

HOLDOUT = Seed(5418)
"""Always the same test set, whatever the seed of a run."""

COPIED = "ZSTANDDEV"
"""XSTANDDEV once more, in every row of the published file: it says nothing of the Z axis."""

OTHERS = MappingProxyType({"x": "yz", "yz": "x"})
"""The axes that a model does not read."""


@final
@dataclass(frozen=True, slots=True)
class Wisdm(DataSource):
    """Label = activity, user = who did it; a random fifth of each user's rows is the test.

    By chance, since a user's rows stand in stretches of one activity each: the last ones are
    not of all of them. Missing cells count as the training mean of their column. Times are rows
    of the file.

    Args:
        axes: of the accelerometer that the model reads. Where it reads "x" or "yz", the columns
            of the other axes are each example's embedding: a second modality, another direction
            of the same movement. Left out of both are then RESULTANT, which is of all axes, and
            ZSTANDDEV, which in the published file is a copy of XSTANDDEV.

    """

    axes: Literal["xyz", "x", "yz"] = "xyz"

    name: ClassVar[str] = "wisdm"
    source: ClassVar[str] = (
        "Kwapisz, Weiss, Moore 2010, WISDM activity prediction v1.1, transformed; free for "
        "research with citation"
    )

    def load(self, folder: Path | None) -> Dataset:
        """Read `wisdm/wisdm_windows.csv.gz`; it cannot be fetched in this form."""
        path = need_file(folder, ("wisdm/wisdm_windows.csv.gz",), self.source)
        table = read_table(path)
        need_columns(path, table, COLUMNS)
        labels = torch.from_numpy(whole_numbers(path, table, "label", len(CLASS_NAMES)))
        users = numbered(path, table, "user")
        test = stratified(users.numbers, round(SHARE * len(labels)), HOLDOUT)
        read = table[list(_columns(self.axes))]
        inputs = encoded(path, read, read[(~test).numpy()])
        embeddings = None
        if self.axes != "xyz":
            unread = table.loc[(~test).numpy(), list(_columns(OTHERS[self.axes]))]
            embeddings = encoded(path, unread, unread)
        return Dataset(
            Examples(inputs[~test], labels[~test]),
            Examples(inputs[test], labels[test]),
            Task((inputs.shape[1],), CLASS_NAMES),
            users.numbers[~test],
            users.names,
            times=(~test).nonzero().flatten(),
            embeddings=embeddings,
        )


def _columns(axes: str) -> tuple[str, ...]:
    if axes == "xyz":
        return COLUMNS
    columns = (f"{axis}{figure}" for axis in axes.upper() for figure in FIGURES)
    return tuple(column for column in columns if column != COPIED)
