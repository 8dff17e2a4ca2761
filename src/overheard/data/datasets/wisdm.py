"""What people with a phone in the pocket are doing, from its accelerometer."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

import torch

from overheard.core.examples import Examples
from overheard.core.task import Task
from overheard.data.dataset import Dataset, DataSource
from overheard.data.folder import need_file
from overheard.data.holdout import latest
from overheard.data.tables import encoded, need_columns, numbered, read_table, whole_numbers

CLASS_NAMES = ("Downstairs", "Jogging", "Sitting", "Standing", "Upstairs", "Walking")

COLUMNS = (
    *(f"{axis}{tenth}" for axis in "XYZ" for tenth in range(10)),
    *(
        f"{axis}{figure}"
        for figure in ("AVG", "PEAK", "ABSOLDEV", "STANDDEV")
        for axis in "XYZ"
    ),
    "RESULTANT",
)
"""Of a window of ten seconds: a histogram of ten bins and four figures an axis, and the
length of the acceleration."""


@final
@dataclass(frozen=True, slots=True)
class Wisdm(DataSource):
    """Label = activity, user = who did it; the last fifth of each user's rows is the test.

    Missing cells count as the training mean of their column.
    """

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
        test = latest(users.numbers, torch.arange(len(labels)))
        columns = table[list(COLUMNS)]
        inputs = encoded(path, columns, columns[(~test).numpy()])
        return Dataset(
            Examples(inputs[~test], labels[~test]),
            Examples(inputs[test], labels[test]),
            Task((inputs.shape[1],), CLASS_NAMES),
            users.numbers[~test],
            users.names,
        )
