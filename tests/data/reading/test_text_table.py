import gzip
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from overheard.core.errors import DataError
from overheard.data.reading.text_table import read_text_table


def cells(tmp_path: Path, content: bytes | str, header_lines: int = 1) -> dict[str, list[str]]:
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    table = read_text_table(path, header_lines)
    return {name: column.cells() for name, column in table.columns.items()}


def notes(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    return " ".join(read_text_table(path).notes)


def test_cells_stay_as_they_are_written(tmp_path: Path) -> None:
    text = 'a,b\n01,"x, y"\n 1, NA\n9007199254740993,\n'
    assert cells(tmp_path, text) == {
        "a": ["01", "1", "9007199254740993"],
        "b": ["x, y", "NA", ""],
    }


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_finds_the_separator_and_tells_it(tmp_path: Path, separator: str) -> None:
    lines = [["size", "note"], ["1.5", "a b"], ["2.5", "c"]]
    text = "\n".join(separator.join(line) for line in lines)
    assert cells(tmp_path, text) == {"size": ["1.5", "2.5"], "note": ["a b", "c"]}
    assert ("separated" in notes(tmp_path, text.encode())) == (separator != ",")


def test_decimal_commas_do_not_hide_the_semicolons(tmp_path: Path) -> None:
    assert cells(tmp_path, "a;b\n1,5;2,0\n3,5;4,0\n")["a"] == ["1,5", "3,5"]


def test_a_line_may_state_the_separator(tmp_path: Path) -> None:
    assert cells(tmp_path, "sep=;\na;b\n1;2\n") == {"a": ["1"], "b": ["2"]}


@pytest.mark.parametrize(
    ("encoding", "told"),
    [("utf-8", ""), ("utf-8-sig", ""), ("utf-16", "utf-16"), ("utf-16-le", "utf-16-le"),
     ("cp1252", "cp1252")],
)  # fmt: skip
def test_finds_the_encoding_and_tells_all_but_utf_8(
    tmp_path: Path, encoding: str, told: str
) -> None:
    content = "größe,b\nü,1\n".encode(encoding)
    assert cells(tmp_path, content) == {"größe": ["ü"], "b": ["1"]}
    assert told in notes(tmp_path, content)
    assert bool(notes(tmp_path, content)) == bool(told)


@pytest.mark.parametrize("letter", ["x", "\u20ac"])
def test_refuses_many_different_texts_and_reads_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, letter: str
) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{number:04d}{letter * 20},a" for number in range(999)]
    path.write_text("\n".join(["x,y", *rows]), encoding="utf-8")
    # A text takes 72 bytes of memory, and 1 for each of its 24 letters, or 4 if one is beyond
    # ASCII: 999 x 96 bytes, or 999 x 168, and some for the column y.
    expected = 999 * (72 + 24 * (1 if letter == "x" else 4)) + 73
    monkeypatch.setenv("OVERHEARD_MAX_UNPACKED", str(4 * expected - 4))
    with pytest.raises(DataError, match=f"its different texts takes {expected} bytes"):
        read_text_table(path)
    monkeypatch.setenv("OVERHEARD_MAX_UNPACKED", str(4 * expected))
    assert len(read_text_table(path).columns["x"].texts) == 999


def test_a_letter_may_lie_across_two_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overheard.data.reading.text_table.BLOCK_BYTES", 7)
    assert cells(tmp_path, "a,b\n1,\u20ac\u20ac\n2,\u00e9\n") == {
        "a": ["1", "2"],
        "b": ["\u20ac\u20ac", "\u00e9"],
    }


def test_a_header_has_no_line_or_two(tmp_path: Path) -> None:
    assert cells(tmp_path, "5.1,x\n4.9,y\n", 0) == {"0": ["5.1", "4.9"], "1": ["x", "y"]}
    two = cells(tmp_path, "crp,age,\nmg/l,,\n5,60,x\n", 2)
    assert two == {"crp mg/l": ["5"], "age": ["60"], "Unnamed: 2": ["x"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("5.1,3.5,x\n4.9,3.0,y\n", "header_lines = 0"),
        ("a,b\nmm,kg\n1,2\n3,4\n5,6\n", "header_lines = 2"),
        ("a,a\n1,2\n", "'a' is there twice"),
        ("a,b\n1,2,3\n", "Expected 2 columns, got 3"),
        ("a,b\n1,2\n3\n", "Expected 2 columns, got 1"),
        ('a,b\n1,"open\n', "never closed"),
        ("a,b\n", "must have rows"),
        ("", "is empty"),
        (b"a,b\n1,\0\n", "NUL"),
        (b"a,b\n1,\x81\n", "neither in UTF-8 nor in cp1252"),
        (b"\xff\xfea\x00,", "neither"),
    ],
)
def test_refuses_what_would_be_read_wrongly(
    tmp_path: Path, content: bytes | str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        cells(tmp_path, content)


def test_refuses_a_damaged_gzip_file_and_a_cell_that_is_far_too_long(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 1000)[:-10])
    with pytest.raises(DataError, match=r"t\.csv\.gz cannot be read"):
        read_text_table(path)
    with pytest.raises(DataError, match="cannot be read"):
        cells(tmp_path, b"a,b\n" + b"x" * 2**25 + b",1\n")


def test_columns_named_by_numbers_in_order_are_a_header(tmp_path: Path) -> None:
    assert list(cells(tmp_path, "0,1,2\n5,6,7\n")) == ["0", "1", "2"]


def test_a_parquet_table_becomes_texts(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "id": [9007199254740993, 1],
            "w": pd.Categorical(["x", None]),
            "f": [0.1, None],
            "day": pd.to_datetime(["2020-01-31", None]),
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_text_table(tmp_path / "t.parquet")
    assert table.columns["id"].cells() == ["9007199254740993", "1"]
    assert table.columns["w"].cells() == ["x", ""]
    assert table.columns["f"].cells() == ["0.1", ""]
    assert table.columns["day"].cells()[0].startswith("2020-01-31")
    pd.DataFrame({"odd": [[1, 2]]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="'odd' has neither numbers, strings nor dates"):
        read_text_table(tmp_path / "t.parquet")


def test_numbers_that_pandas_stored_as_categories_are_categories(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"ward": pd.Categorical([3, 5, 3]), "age": [3, 5, 3]})
    frame.to_parquet(path)
    columns = read_text_table(path).columns
    assert (columns["ward"].is_category, columns["age"].is_category) == (True, False)
    assert columns["ward"].texts == ("3", "5")


@pytest.mark.parametrize(
    "notes", [b"{", b"[]", b'{"columns": [3]}', b'{"columns": {"name": 1}}']
)
def test_notes_of_another_form_tell_of_no_categories(tmp_path: Path, notes: bytes) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"ward": [3, 5]}).replace_schema_metadata({b"pandas": notes})
    pq.write_table(table, path)
    assert not read_text_table(path).columns["ward"].is_category
