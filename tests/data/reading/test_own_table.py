from pathlib import Path

import pandas as pd
import pytest

from overheard.core.errors import DataError
from overheard.core.seeds import Seed
from overheard.data.dataset import Dataset
from overheard.data.reading.own_table import TableColumns, load_table
from overheard.data.reading.texts import TextSettings

FRAME = pd.DataFrame(
    {
        "age": ["30", "NA", "50", "40", "20"] * 4,
        "ward": ["a", "b", "NA", "a", "b"] * 4,
        "note": ["cold nose", "warm hands", "cold feet", "warm nose", ""] * 4,
        "who": ["p2", "p1"] * 10,
        "ill": [1, 0] * 10,
    }
)


def loaded(
    tmp_path: Path, columns: TableColumns, frame: pd.DataFrame = FRAME, kind: str = "csv"
) -> Dataset:
    path = tmp_path / f"own.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return load_table(path, columns, TextSettings(10, 4), Seed(0))


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_numbers_and_categories_become_columns(tmp_path: Path, kind: str) -> None:
    frame = FRAME.drop(columns="note")
    dataset = loaded(tmp_path, TableColumns("ill", user="who"), frame, kind)
    assert (len(dataset.train), len(dataset.test)) == (16, 4)
    # age is one column of numbers in spite of its NA; the wards are a, b and NA.
    assert dataset.task.shape == (4,)
    assert dataset.task.class_names == ("0", "1")
    assert dataset.user_names == ("p1", "p2")
    assert dataset.users is not None
    # p2 is ill in every row, p1 in none.
    assert dataset.users.equal(dataset.train.labels)


def test_a_text_column_becomes_tokens(tmp_path: Path) -> None:
    dataset = loaded(tmp_path, TableColumns("ill", text="note"))
    assert dataset.task.shape == (4,)
    # cold, feet, hands, nose, warm, padding and unknown.
    assert dataset.task.vocabulary == 7


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_times_and_attributes_are_told_and_are_no_inputs(tmp_path: Path, kind: str) -> None:
    days = pd.to_datetime([f"2004-08-{31 - place:02}" for place in range(20)])
    frame = FRAME.assign(when=days, sex=["f", "m"] * 10, age=range(20))
    columns = TableColumns("ill", user="who", time="when", attributes=("sex", "ward"))
    with pytest.raises(DataError, match="user 'p2' has several values in column 'ward'"):
        loaded(tmp_path, columns, frame, kind)
    columns = TableColumns("ill", user="who", time="when", attributes=("sex",))
    dataset = loaded(tmp_path, columns, frame.drop(columns=["ward", "note"]), kind)
    # Age alone is left. It rises from row to row, and the day falls.
    assert dataset.task.shape == (1,)
    assert dataset.times is not None
    assert dataset.times.argsort().equal(dataset.train.inputs[:, 0].argsort(descending=True))
    # p1 is m, p2 is f.
    assert dict(dataset.attributes) == {"sex": ("m", "f")}


def test_nothing_is_told_of_times_and_attributes_that_are_not_named(tmp_path: Path) -> None:
    dataset = loaded(tmp_path, TableColumns("ill", user="who"), FRAME.drop(columns="note"))
    assert dataset.times is None
    assert not dataset.attributes


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (TableColumns("ill", time="day"), "no column 'day'"),
        (TableColumns("ill", time="ward"), "'a', which is no date"),
        (TableColumns("ill", user="who", attributes=("height",)), "no column 'height'"),
        (TableColumns("ill", user="who", attributes=("who",)), "different columns"),
        (TableColumns("ill", attributes=("ward",)), "name the column that tells the user"),
        (TableColumns("sick"), "no column 'sick'; it has 'age'"),
        (TableColumns("ill", user="owner"), "no column 'owner'"),
        (TableColumns("ill", text="ill"), "different columns"),
        (TableColumns("ill", text="who", user="who"), "different columns"),
    ],
)
def test_columns_that_are_not_there_are_refused(
    tmp_path: Path, columns: TableColumns, said: str
) -> None:
    with pytest.raises(DataError, match=said):
        loaded(tmp_path, columns)


def test_a_label_column_with_holes_or_one_label_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="empty cells"):
        loaded(tmp_path, TableColumns("ill"), FRAME.assign(ill=[None, "x"] * 10))
    with pytest.raises(DataError, match="1 different labels"):
        loaded(tmp_path, TableColumns("ill"), FRAME.assign(ill=3))


def test_a_table_of_nothing_but_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column left"):
        loaded(tmp_path, TableColumns("ill"), FRAME[["ill"]])
