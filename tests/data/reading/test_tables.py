import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from overheard.core.errors import DataError
from overheard.data.reading.tables import (
    categorical_column,
    encode_columns,
    integer_column,
    read_table,
    text_column,
)


def write_csv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(text)
    return path


def test_numbers_are_standardised_by_the_table_they_are_fitted_to() -> None:
    # Mean 2, deviation sqrt(((1-2)^2 + (3-2)^2) / 2) = 1.
    fit = pd.DataFrame({"a": [1.0, 3.0]})
    assert encode_columns("t", fit, fit).flatten().tolist() == [-1.0, 1.0]
    assert encode_columns("t", pd.DataFrame({"a": [5.0, np.nan]}), fit).flatten().tolist() == [
        3.0,
        0.0,
    ]


def test_strings_are_one_hot_encoded_and_an_unseen_one_is_zero() -> None:
    fit = pd.DataFrame({"a": ["x", "?", "y"]})
    # Sorted: ?, x, y.
    assert encode_columns("t", fit, fit).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert encode_columns("t", pd.DataFrame({"a": ["z", "y"]}), fit).tolist() == [
        [0, 0, 0],
        [0, 0, 1],
    ]


def test_a_missing_string_is_a_category_of_its_own() -> None:
    fit = pd.DataFrame({"a": ["x", None]})
    assert encode_columns("t", fit, fit).tolist() == [[0, 1], [1, 0]]


def test_a_constant_column_becomes_zero() -> None:
    fit = pd.DataFrame({"a": [7, 7]})
    assert encode_columns("t", fit, fit).equal(torch.zeros(2, 1))


@pytest.mark.parametrize(
    ("fit", "table", "message"),
    [
        ({"a": [np.nan]}, {"a": [1.0]}, "is empty"),
        ({"a": [1.0, 2.0]}, {"a": ["x", "y"]}, "strings among its numbers"),
        ({"a": [str(n) + "x" for n in range(1001)]}, {"a": ["x"]}, "1001 different strings"),
        ({"a": [1e308, -1e308]}, {"a": [1.0]}, "too large"),
        ({}, {}, "no column left"),
    ],
)
def test_refuses_columns_that_cannot_be_encoded(
    fit: dict[str, list[object]], table: dict[str, list[object]], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        encode_columns("t.csv", pd.DataFrame(table), pd.DataFrame(fit))


def test_only_an_empty_cell_of_a_csv_counts_as_missing(tmp_path: Path) -> None:
    table = read_table(write_csv(tmp_path, "a,b\nNA,1\n?,\nNone,3\n"))
    assert table["a"].tolist() == ["NA", "?", "None"]
    assert table["b"].isna().tolist() == [False, True, False]


def test_a_parquet_table_reads_with_its_types(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"n": [1, 2], "w": pd.Categorical(["x", "y"]), "b": [True, False], "f": [0.5, np.nan]}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table["n"].tolist() == [1, 2]
    assert table["w"].tolist() == ["x", "y"]
    assert table["b"].tolist() == [1, 0]
    assert table["f"].isna().tolist() == [False, True]


def test_dates_become_iso_strings(tmp_path: Path) -> None:
    days = pd.to_datetime(["2020-01-31", None])
    frame = pd.DataFrame({"when": days, "day": [day.date() for day in days]})
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table["when"][0] == "2020-01-31T00:00:00"
    assert table["day"][0] == "2020-01-31"
    assert table["when"].isna().tolist() == table["day"].isna().tolist() == [False, True]


def test_refuses_columns_of_lists_by_name(tmp_path: Path) -> None:
    pd.DataFrame({"odd": [[1, 2]]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="'odd' has neither numbers, strings nor dates"):
        read_table(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    "content", [b"", b"a,b\n", b"\xff\xfe\x00", b'a\n"open', b"a,b\n1,2,3\n", b"a\ninf\n"]
)
def test_refuses_damaged_csv_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"bad\.csv"):
        read_table(path)


def test_refuses_files_without_a_stated_size_unread(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.symlink_to("/proc/version")
    with pytest.raises(DataError, match="is empty: get a new copy"):
        read_table(path)


def test_refuses_damaged_compressed_files(tmp_path: Path) -> None:
    whole = gzip.compress(b"a,b\n" + b"1,2\n" * 1000)
    pd.DataFrame({"a": range(100)}).to_parquet(tmp_path / "whole.parquet")
    parquet = (tmp_path / "whole.parquet").read_bytes()
    for name, content in (
        ("a.csv.gz", whole[:-10]),
        ("b.csv.gz", b"no gzip"),
        ("a.parquet", parquet[:-50]),
        ("b.parquet", b""),
        ("c.parquet", parquet[:20] + b"\x00" * 60 + parquet[80:]),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=name.replace(".", r"\.")):
            read_table(tmp_path / name)


@pytest.mark.parametrize("cells", [[0, 3], [-1, 0], [0.5, 1.0], ["a", "b"]])
def test_refuses_numbers_that_are_no_labels(cells: list[object]) -> None:
    with pytest.raises(DataError, match="'y' must hold whole numbers from 0 to 2"):
        integer_column(Path("t.csv"), pd.DataFrame({"y": cells}), "y", 3)


def test_an_empty_cell_is_an_empty_text() -> None:
    assert text_column(Path("t"), pd.DataFrame({"a": ["x", None]}), "a") == ["x", ""]
    with pytest.raises(DataError, match="must hold texts"):
        text_column(Path("t"), pd.DataFrame({"a": [1, 2]}), "a")


def test_categories_are_numbered_in_order() -> None:
    column = categorical_column(Path("t"), pd.DataFrame({"u": ["b", "a", "b"]}), "u")
    assert column.numbers.tolist() == [1, 0, 1]
    assert column.names == ("a", "b")
    assert categorical_column(Path("t"), pd.DataFrame({"u": [30, 4]}), "u").names == ("4", "30")
    with pytest.raises(DataError, match="empty cells"):
        categorical_column(Path("t"), pd.DataFrame({"u": ["a", None]}), "u")
