"""Reads when something was: as numbers, or as dates in ISO form."""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int64
from torch import Tensor

from overheard.core.errors import DataError


def in_order(path: Path, name: str, cells: pd.Series) -> Int64[Tensor, " examples"]:
    """The place of each time among the different times, from 0, the earliest.

    Places and not times, so that numbers of any size and dates are told alike.

    Args:
        path: of the file, for the refusal.
        name: what the file calls them.
        cells: numbers, or dates such as 2004-08-02 or 2004-08-02T17:30+02:00; a date without
            a zone is taken as UTC.

    Raises:
        DataError: if a cell is missing, or is neither.

    """
    times = cells if pd.api.types.is_numeric_dtype(cells) else dates(path, name, cells)
    if times.isna().any():
        raise DataError(f"{path}: {name!r} must not have empty cells: drop those rows")
    places = np.unique(times.to_numpy(), return_inverse=True)[1]
    return torch.from_numpy(places.astype(np.int64))


def dates(path: Path, name: str, cells: pd.Series) -> pd.Series:
    """These dates in ISO form, in UTC; a missing cell is no date.

    Raises:
        DataError: if a cell is something else.

    """
    told = pd.to_datetime(cells, format="ISO8601", errors="coerce", utc=True)
    wrong = cells[told.isna() & cells.notna()]
    if len(wrong):
        raise DataError(
            f"{path}: {name!r} holds {str(wrong.iloc[0])[:40]!r}, which is no date: write "
            "dates as 2004-08-02, or as numbers"
        )
    # The zone is the same for all: without it they are plain numbers to NumPy.
    return told.dt.tz_localize(None)
