"""Reads where the examples of an `.npz` file come from: whose, from when, cut out of what."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Int, Int64, Shaped
from torch import Tensor

from overheard.core.errors import DataError
from overheard.core.seeds import Seed
from overheard.data.holdout import held_out_fifth
from overheard.data.reading.arrays import checked_names, read_array
from overheard.data.reading.times import in_order

NAMES = ("user", "times", "records")
"""What the arrays are called, but for the part."""

NUMBERS_OR_NAMES = "iuU"

NUMBERS_OR_DATES = "iufUM"
"""Kinds of arrays, as NumPy tells them by letters."""


@dataclass(frozen=True, slots=True)
class Origins:
    """Where each example comes from; None = untold.

    Args:
        users: the number of the person behind it.
        user_names: what user i is called.
        times: its place in the order of times.
        records: the number of the record that it was cut out of.

    """

    users: Int64[Tensor, " examples"] | None = None
    user_names: tuple[str, ...] = ()
    times: Int64[Tensor, " examples"] | None = None
    records: Int64[Tensor, " examples"] | None = None

    def take(self, kept: Bool[Tensor, " examples"]) -> "Origins":
        """Those of the examples that are marked; users and records keep their numbers."""
        return Origins(
            None if self.users is None else self.users[kept],
            self.user_names,
            None if self.times is None else self.times[kept],
            None if self.records is None else self.records[kept],
        )

    def held_out_fifth(
        self, labels: Int[Tensor, " examples"], seed: Seed, path: Path
    ) -> Bool[Tensor, " examples"]:
        """Mark a fifth of the records at random, each with all that was cut out of it.

        They are chosen in proportion from each label; a record counts as of the label that its
        first example bears.

        Raises:
            DataError: if there are too few to hold any out.

        """
        if self.records is None:
            return held_out_fifth(labels, seed, path)
        _, first = np.unique(self.records.numpy(), return_index=True)
        chosen = held_out_fifth(labels[torch.from_numpy(first)], seed, path)
        return chosen[self.records]


def read_origins(path: Path, part: str, held: frozenset[str], examples: int) -> Origins:
    """What the file tells of so many examples.

    Args:
        path: the file.
        part: "_train", or "" where the file has one part.
        held: the names of the arrays in the file.
        examples: how many there are.

    Raises:
        DataError: if an array is of another length or kind, or named for another part.

    """
    for name in NAMES:
        stray = ({name, f"{name}_train"} - {f"{name}{part}"}) & held
        if stray:
            raise DataError(
                f"{path}: '{min(stray)}' tells of no example: the inputs are 'x{part}', so "
                f"name it '{name}{part}'"
            )
    users, times, records = None, None, None
    user_names: tuple[str, ...] = ()
    if f"user{part}" in held:
        cells = _cells(path, f"user{part}", examples, NUMBERS_OR_NAMES)
        users = _numbers(cells)
        names = [str(cell) for cell in np.unique(cells).tolist()]
        user_names = checked_names(path, f"user{part}", names)
    if f"times{part}" in held:
        cells = _cells(path, f"times{part}", examples, NUMBERS_OR_DATES)
        try:
            moments = pd.Series(cells)
        except pd.errors.OutOfBoundsDatetime as error:
            raise DataError(
                f"{path}: 'times{part}' holds a date that no calendar has: write numbers"
            ) from error
        times = in_order(path, f"times{part}", moments)
    if f"records{part}" in held:
        records = _numbers(_cells(path, f"records{part}", examples, NUMBERS_OR_NAMES))
    return Origins(users, user_names, times, records)


def _cells(path: Path, name: str, examples: int, kinds: str) -> Shaped[np.ndarray, " examples"]:
    cells = read_array(path, name)
    if cells.shape != (examples,) or cells.dtype.kind not in kinds:
        said = "whole numbers or names" if kinds == NUMBERS_OR_NAMES else "numbers or dates"
        raise DataError(
            f"{path}: '{name}' must be {examples} {said}, one an example, is {cells.dtype} of "
            f"shape {cells.shape}"
        )
    return cells


def _numbers(cells: Shaped[np.ndarray, " examples"]) -> Int64[Tensor, " examples"]:
    """The place of each cell among the different ones."""
    return torch.from_numpy(np.unique(cells, return_inverse=True)[1].astype(np.int64))
