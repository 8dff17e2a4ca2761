from pathlib import Path

import pandas as pd
import pytest

from overheard.core.errors import DataError
from overheard.data.reading.attributes import read_attributes
from overheard.data.reading.tables import categorical_column

PATH = Path("a.csv")
FRAME = pd.DataFrame(
    {"who": ["p2", "p1", "p2", "p3"], "sex": ["f", "m", "f", "f"], "age": [40, 30, 40, 20]}
)


def test_refuses_a_user_with_several_values_by_name() -> None:
    users = categorical_column(PATH, FRAME, "who")
    frame = FRAME.assign(age=[40, 30, 41, 20])
    with pytest.raises(DataError, match="user 'p2' has several values in column 'age'"):
        read_attributes(PATH, frame, ("sex", "age"), users)


def test_refuses_a_missing_value_or_column() -> None:
    users = categorical_column(PATH, FRAME, "who")
    with pytest.raises(DataError, match="'sex' must not have empty cells"):
        read_attributes(PATH, FRAME.assign(sex=["f", None, "f", "f"]), ("sex",), users)
    with pytest.raises(DataError, match="no column 'height'"):
        read_attributes(PATH, FRAME, ("height",), users)
