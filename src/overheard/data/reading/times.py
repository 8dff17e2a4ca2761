"""Conversion of times, given as numbers or ISO dates, to ranks."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from overheard.core.errors import DataError

if TYPE_CHECKING:  # pandas is large, and most audits read no table
    import pandas


def rank_times(path: Path, name: str, cells: "pandas.Series") -> Int64[Tensor, " examples"]:
    """Return the rank of each time among the different times, from 0, the earliest.

    Ranks treat dates and numbers of any size alike.

    Args:
        path: the path of the file, for the error message.
        name: the name of the column, for the error message.
        cells: numbers, or dates such as 2004-08-02 or 2004-08-02T17:30+02:00; a date without
            a time zone is taken as UTC.

    Raises:
        DataError: if a cell is missing, or is neither a number nor a date.

    """
    import pandas as pd

    times = cells if pd.api.types.is_numeric_dtype(cells) else parse_dates(path, name, cells)
    if times.isna().any():
        raise DataError(f"{path}: {name!r} must not have empty cells: drop those rows")
    ranks = np.unique(times.to_numpy(), return_inverse=True)[1]
    return torch.from_numpy(ranks.astype(np.int64))


def parse_dates(path: Path, name: str, cells: "pandas.Series") -> "pandas.Series":
    """Parse ISO dates as UTC; a missing cell stays missing.

    Raises:
        DataError: if a cell is not an ISO date.

    """
    import pandas as pd

    parsed = pd.to_datetime(cells, format="ISO8601", errors="coerce", utc=True)
    wrong = cells[parsed.isna() & cells.notna()]
    if len(wrong):
        raise DataError(
            f"{path}: {name!r} has {str(wrong.iloc[0])[:40]!r}, which is not a date: write "
            "dates as 2004-08-02, or use numbers"
        )
    # All are in UTC; without a zone NumPy treats them as plain numbers.
    return parsed.dt.tz_localize(None)
