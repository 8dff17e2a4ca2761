from pathlib import Path

import pandas as pd
import pytest

from overheard.core.errors import DataError
from overheard.data.reading.times import rank_times

PATH = Path("a.csv")


@pytest.mark.parametrize(
    "cells",
    [
        [30, -1, 30, 10**17],
        [0.5, -2.0, 0.5, float("inf")],
        ["2004-08-02", "1999-12-31", "2004-08-02", "2004-08-02T00:00:01"],
        # 09:00+02:00 is 07:00 UTC.
        ["2004-08-02T07:00Z", "2004-08-02T08:00+02:00", "2004-08-02T09:00+02:00", "2004-08-03"],
    ],
)
def test_times_of_any_kind_become_ranks(cells: list[object]) -> None:
    assert rank_times(PATH, "when", pd.Series(cells)).tolist() == [1, 0, 1, 2]


@pytest.mark.parametrize("cells", [[1.0, None], ["2004-08-02", None]])
def test_refuses_a_missing_time(cells: list[object]) -> None:
    with pytest.raises(DataError, match=r"a.csv: 'when' must not have empty cells"):
        rank_times(PATH, "when", pd.Series(cells))


@pytest.mark.parametrize("cell", ["soon", "02/08/2004", "2004-13-01", "12"])
def test_refuses_what_is_not_a_date(cell: str) -> None:
    with pytest.raises(DataError, match=f"{cell}', which is not a date"):
        rank_times(PATH, "when", pd.Series(["2004-08-02", cell]))
