from pathlib import Path

import pytest
import torch

from overheard.core.errors import DataError
from overheard.data.reading.attributes import values_of_users
from overheard.data.reading.tables import CategoricalColumn

PATH = Path("a.csv")
USERS = CategoricalColumn(torch.tensor([1, 0, 1, 2]), ("p1", "p2", "p3"))
SEX = CategoricalColumn(torch.tensor([0, 1, 0, 0]), ("f", "m"))


def test_each_user_has_a_value() -> None:
    # p1 is in row 1, p2 in rows 0 and 2, p3 in row 3.
    assert values_of_users(PATH, {"sex": SEX}, USERS) == {"sex": ("m", "f", "f")}


def test_refuses_a_user_with_several_values_by_name() -> None:
    age = CategoricalColumn(torch.tensor([2, 1, 3, 0]), ("20", "30", "40", "41"))
    with pytest.raises(DataError, match="user 'p2' has several values in column 'age'"):
        values_of_users(PATH, {"sex": SEX, "age": age}, USERS)
