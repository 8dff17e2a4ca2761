"""The provenance of the examples in an `.npz` file: users, times and records."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Int, Int64, Shaped
from torch import Tensor

from overheard.core.errors import DataError
from overheard.core.seeds import Seed
from overheard.data.holdout import hold_out_fifth
from overheard.data.reading.arrays import checked_names, read_array
from overheard.data.reading.times import rank_times

ARRAY_NAMES = ("user", "times", "records")
"""Names of the arrays, without the suffix for the part."""

NUMBERS_OR_NAMES = "iuU"

NUMBERS_OR_DATES = "iufUM"
"""Kinds of arrays, by NumPy's letters."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """The provenance of examples; None = unknown.

    Args:
        users: the number of the user of each example.
        user_names: the name of each user.
        times: the rank of each example's time.
        records: the number of the record from which each example was cut.

    """

    users: Int64[Tensor, " examples"] | None = None
    user_names: tuple[str, ...] = ()
    times: Int64[Tensor, " examples"] | None = None
    records: Int64[Tensor, " examples"] | None = None

    def take(self, is_selected: Bool[Tensor, " examples"]) -> "Provenance":
        """Return the provenance of the marked examples; numbers do not change."""
        return Provenance(
            None if self.users is None else self.users[is_selected],
            self.user_names,
            None if self.times is None else self.times[is_selected],
            None if self.records is None else self.records[is_selected],
        )

    def hold_out_fifth(
        self, labels: Int[Tensor, " examples"], seed: Seed, path: Path
    ) -> Bool[Tensor, " examples"]:
        """Mark all examples of a random fifth of the records.

        Records are chosen in proportion from each label. The label of a record is that of its
        first example.

        Raises:
            DataError: if there are too few records to hold any out.

        """
        if self.records is None:
            return hold_out_fifth(labels, seed, path)
        _, first = np.unique(self.records.numpy(), return_index=True)
        is_held_out = hold_out_fifth(labels[torch.from_numpy(first)], seed, path)
        return is_held_out[self.records]


def read_provenance(
    path: Path, part: str, array_names: frozenset[str], examples: int
) -> Provenance:
    """Read the provenance of the examples in a file.

    Args:
        path: the file.
        part: "_train", or "" if the file has one part.
        array_names: the names of the arrays in the file.
        examples: the number of examples.

    Raises:
        DataError: if an array has another length or kind, or belongs to another part.

    """
    for name in ARRAY_NAMES:
        stray = ({name, f"{name}_train"} - {f"{name}{part}"}) & array_names
        if stray:
            raise DataError(
                f"{path}: '{min(stray)}' belongs to no inputs, which are 'x{part}': name it "
                f"'{name}{part}'"
            )
    users, times, records = None, None, None
    user_names: tuple[str, ...] = ()
    if f"user{part}" in array_names:
        cells = _read_column(path, f"user{part}", examples, NUMBERS_OR_NAMES)
        users = _enumerate(cells)
        names = [str(cell) for cell in np.unique(cells).tolist()]
        user_names = checked_names(path, f"user{part}", names)
    if f"times{part}" in array_names:
        times = _read_times(path, f"times{part}", examples)
    if f"records{part}" in array_names:
        records = _enumerate(_read_column(path, f"records{part}", examples, NUMBERS_OR_NAMES))
    return Provenance(users, user_names, times, records)


def _read_times(path: Path, name: str, examples: int) -> Int64[Tensor, " examples"]:
    import pandas as pd

    cells = _read_column(path, name, examples, NUMBERS_OR_DATES)
    try:
        time_cells = pd.Series(cells)
    except pd.errors.OutOfBoundsDatetime as error:
        raise DataError(
            f"{path}: '{name}' has a date out of range: use numbers instead"
        ) from error
    return rank_times(path, name, time_cells)


def _read_column(
    path: Path, name: str, examples: int, kinds: str
) -> Shaped[np.ndarray, " examples"]:
    cells = read_array(path, name)
    if cells.shape != (examples,) or cells.dtype.kind not in kinds:
        expected = "whole numbers or names" if kinds == NUMBERS_OR_NAMES else "numbers or dates"
        raise DataError(
            f"{path}: '{name}' must be {examples} {expected}, one per example, but is "
            f"{cells.dtype} of shape {cells.shape}"
        )
    return cells


def _enumerate(cells: Shaped[np.ndarray, " examples"]) -> Int64[Tensor, " examples"]:
    """Return the rank of each cell among the different ones."""
    return torch.from_numpy(np.unique(cells, return_inverse=True)[1].astype(np.int64))
