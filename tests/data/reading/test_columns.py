"""Columns of times, attributes and labels."""

from pathlib import Path

import pandas as pd
import pytest
import torch

from overheard.core.errors import DataError
from overheard.data.reading.attributes import values_of_users
from overheard.data.reading.float_labels import (
    float_label_rows,
    kind_of_labels,
    standardise_numbers,
)
from overheard.data.reading.tables import CategoricalColumn
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


@pytest.mark.parametrize("cell", ["soon", "02/08/2004", "2004-13-01", "12"])
def test_refuses_what_is_not_a_date(cell: str) -> None:
    with pytest.raises(DataError, match=f"{cell}', which is not a date"):
        rank_times(PATH, "when", pd.Series(["2004-08-02", cell]))
    for first in (1.0, "2004-08-02"):
        with pytest.raises(DataError, match=r"a.csv: 'when' must not have empty cells"):
            rank_times(PATH, "when", pd.Series([first, None]))


USERS = CategoricalColumn(torch.tensor([1, 0, 1, 2]), ("p1", "p2", "p3"))


SEX = CategoricalColumn(torch.tensor([0, 1, 0, 0]), ("f", "m"))


def test_each_user_has_a_value() -> None:
    # p1 is in row 1, p2 in rows 0 and 2, p3 in row 3.
    assert values_of_users(PATH, {"sex": SEX}, USERS) == {"sex": ("m", "f", "f")}


def test_refuses_a_user_with_several_values_by_name() -> None:
    age = CategoricalColumn(torch.tensor([2, 1, 3, 0]), ("20", "30", "40", "41"))
    with pytest.raises(DataError, match="user 'p2' has several values in column 'age'"):
        values_of_users(PATH, {"sex": SEX, "age": age}, USERS)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (torch.tensor([0, 2, 1]), "classification"),
        (torch.tensor([[0.0, 1.0], [1.0, 1.0]]), "multi_label"),
        (torch.tensor([[0], [1]]), "classification"),
        (torch.tensor([0.0, 1.0]), "classification"),
        (torch.tensor([0.0, 2.5]), "regression"),
        (torch.tensor([[0.5, 1.0]]), "regression"),
    ],
)
def test_shape_and_type_tell_the_kind(labels: torch.Tensor, kind: str) -> None:
    assert kind_of_labels(labels) == kind


@pytest.mark.parametrize("labels", [torch.tensor([[0, 2]]), torch.zeros(1, 1, 1).fill_(0.5)])
def test_refuses_labels_of_no_kind(labels: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="a row of 0 and 1"):
        kind_of_labels(labels)


def test_each_example_has_a_row() -> None:
    assert float_label_rows(torch.tensor([1.0, 2.0]).double()).tolist() == [[1.0], [2.0]]
    with pytest.raises(ValueError, match="NaN"):
        float_label_rows(torch.tensor([torch.nan]))


def test_numbers_are_in_deviations_of_the_training_part() -> None:
    # The training part has 1 and 5: mean 3, deviation 2. So 9 is 3 deviations above.
    rows, is_test = torch.tensor([[1.0], [9.0], [5.0]]), torch.tensor([False, True, False])
    assert standardise_numbers(rows, is_test).flatten().tolist() == [-1.0, 3.0, 1.0]
    with pytest.raises(ValueError, match="the same number"):
        standardise_numbers(torch.ones(3, 1), is_test)
