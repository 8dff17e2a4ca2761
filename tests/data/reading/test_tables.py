"""Reading tables of numbers and texts."""

import contextlib
import gzip
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from overheard.core.errors import DataError
from overheard.data.reading.parquet_tables import read_parquet
from overheard.data.reading.table_names import (
    merge_spellings,
    note_names_alike,
    read_names_of_column,
    refuse_spellings,
)
from overheard.data.reading.tables import (
    categorical_column,
    encode_columns,
    integer_column,
    read_table,
    text_column,
)
from overheard.data.reading.text_table import TextColumn, read_text_table


def write_csv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("fit", "cells", "encoded"),
    [
        # Mean 2, deviation sqrt(((1-2)^2 + (3-2)^2) / 2) = 1.
        ([1.0, 3.0], [1.0, 3.0, 5.0, np.nan], [[-1], [1], [3], [0]]),
        ([7, 7], [7, 7], [[0], [0]]),
        # Sorted: ?, x, y. An unseen string is zero.
        (["x", "?", "y"], ["x", "?", "y", "z"], [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]]),
        # A missing string is a category of its own.
        (["x", None], ["x", None], [[0, 1], [1, 0]]),
    ],
)
def test_numbers_are_standardised_and_strings_one_hot_by_the_table_they_are_fitted_to(
    fit: list[object], cells: list[object], encoded: list[list[float]]
) -> None:
    table, fitted = pd.DataFrame({"a": cells}), pd.DataFrame({"a": fit})
    assert encode_columns("t", table, fitted).tolist() == encoded


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
    # A file without a stated size is not read.
    path.unlink()
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


def test_reads_texts_and_numbers_as_they_are_and_categories_as_texts(tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": pa.array(["a", None, "ARROW:schema"]),
            "category": pa.array(["b", "c", "b"]).dictionary_encode(),
            "number": [1.5, 2.0, None],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", compression="none")
    plain = table.set_column(1, "category", pa.array(["b", "c", "b"]))
    assert read_parquet(tmp_path / "t.parquet").equals(plain)


@pytest.mark.parametrize(
    "column",
    [
        # A text of 10 KB is stored once, and fills 100 MB.
        pa.array(["x" * 10_000] * 10_000),
        pa.array(["x" * 10_000] * 10_000).dictionary_encode(),
        # Equal numbers are stored as one, and their count.
        pa.array(np.zeros(10_000_000, np.int8)),
        pa.nulls(10_000_000),
    ],
    ids=["texts", "categories", "numbers", "nulls"],
)
def test_refuses_a_small_file_that_unpacks_to_much(column: pa.Array, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": column}), path, compression="zstd")
    assert path.stat().st_size < 500_000
    with pytest.raises(DataError, match=r"unpacks to .*--max-unpacked"):
        read_parquet(path)


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.binary(), pa.binary(3)])
def test_refuses_lists_and_bytes_before_it_reads_them(
    kind: pa.DataType, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"x": pa.array([None], kind)}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="'x' has neither numbers, strings nor dates"):
        read_parquet(tmp_path / "t.parquet")


def test_believes_the_headers_of_pages_and_not_the_footer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERHEARD_MAX_UNPACKED", "64MB")
    path = tmp_path / "t.parquet"
    table = pa.table({"x": ["x" * 2_000_000, "a"]})
    pq.write_table(
        table, path, compression="zstd", use_dictionary=False, write_statistics=False
    )
    group = pq.read_metadata(path).row_group(0)
    content = path.read_bytes()
    for size in {group.total_byte_size, group.column(0).total_uncompressed_size}:
        content = content.replace(_number(size), _number(100, len(_number(size))))
    path.write_bytes(content)
    assert pq.read_metadata(path).row_group(0).total_byte_size == 100
    with pytest.raises(DataError, match=r"unpacks to 200\d{4}, .*--max-unpacked"):
        read_parquet(path)


def test_refuses_texts_that_are_stored_as_differences(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    # Each text is stored as the length that it has in common with the one before.
    table = pa.table({"x": ["x" * 100_000] * 1000})
    pq.write_table(table, path, use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY")
    assert path.stat().st_size < 200_000
    with pytest.raises(ValueError, match="stored as differences between texts"):
        read_parquet(path)


@pytest.mark.parametrize(
    ("parts", "message"),
    [(20_000, r"unpacks to .*--max-unpacked"), (200_000, "over 100000 items")],
)
def test_refuses_a_footer_of_many_empty_parts(
    parts: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERHEARD_MAX_UNPACKED", "64MB")
    path = tmp_path / "t.parquet"
    # A list of structures, each with one number, for which Arrow takes over 1 KB.
    footer = b"\x49\xfc" + _varint(parts) + b"\x26\x00\x00" * parts + b"\x00"
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises((DataError, ValueError), match=message):
        read_parquet(path)


@pytest.mark.nightly
def test_a_damaged_byte_is_an_error_or_another_value_and_never_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": ["a", None, "c"], "y": [1, 2, 3]}), path)
    intact = path.read_bytes()
    for place in range(len(intact)):
        for byte in (0, 0x19, 0x7F, 0xFF):
            path.write_bytes(intact[:place] + bytes([byte]) + intact[place + 1 :])
            with contextlib.suppress(DataError, ValueError, OSError, pa.ArrowException):
                read_parquet(path)


def _number(number: int, length: int = 0) -> bytes:
    """Return a whole number as a footer has it, in this many bytes at the least."""
    return _varint(2 * number, length)


def _varint(number: int, length: int = 0) -> bytes:
    parts = [
        number >> 7 * place & 127
        for place in range(max(1, length, -(-number.bit_length() // 7)))
    ]
    return bytes([*(part | 128 for part in parts[:-1]), parts[-1]])


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


@pytest.mark.parametrize(
    ("text", "last"),
    [
        # As UCI's auto-mpg.data: a tab before the name, which has blanks within quotes.
        ('18.  8   3.5\t"a b"\n15.  ?  3.6\t"c"\n', ["a b", "c"]),
        (" 0.1  18  2.3  0\n 0.02  0   7.0  1\n", ["0", "1"]),
    ],
)
def test_blanks_separate_the_cells_of_a_data_file(
    tmp_path: Path, text: str, last: list[str]
) -> None:
    read = cells(tmp_path, text, 0)
    assert (list(read), read["3"]) == (["0", "1", "2", "3"], last)


def test_blanks_separate_names_of_columns_too(tmp_path: Path) -> None:
    assert cells(tmp_path, " a   y\n 1.5 no\n 2.5 yes\n") == {
        "a": ["1.5", "2.5"],
        "y": ["no", "yes"],
    }


@pytest.mark.parametrize(
    "text", ["New York\t5\nLos Angeles\t6\n", "1 2,a\n3 4,b\n", "a,b c\nd,e f\n"]
)
def test_blanks_within_cells_separate_none(tmp_path: Path, text: str) -> None:
    assert len(cells(tmp_path, text, 0)) == 2


@pytest.mark.parametrize(("row", "what"), [("1 2", "fewer"), ("1 2 3 4", "more")])
def test_refuses_rows_of_another_length_between_blanks(
    tmp_path: Path, row: str, what: str
) -> None:
    text = "\n".join([*["1 2 3"] * 50, row])
    with pytest.raises(DataError, match=f"row 51 has {what} cells between blanks"):
        cells(tmp_path, text, 0)


def test_a_line_may_state_the_separator(tmp_path: Path) -> None:
    assert cells(tmp_path, "sep=;\na;b\n1;2\n") == {"a": ["1"], "b": ["2"]}
    # Decimal commas do not hide the semicolons.
    assert cells(tmp_path, "a;b\n1,5;2,0\n3,5;4,0\n")["a"] == ["1,5", "3,5"]
    # Numbers in order are a header.
    assert list(cells(tmp_path, "0,1,2\n5,6,7\n")) == ["0", "1", "2"]


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


PATH = Path("t.csv")


def column(*cells: str) -> TextColumn:
    texts = tuple(dict.fromkeys(cells))
    return TextColumn(np.array([texts.index(cell) for cell in cells]), texts)


def test_names_stay_as_written_and_numbers_are_in_order_of_size() -> None:
    read = read_names_of_column(PATH, "u", column("10", "1", "01", "9", "7.0", "7", "1E1"))
    assert read.names == ("01", "1", "7", "7.0", "9", "10", "1E1")
    assert read.numbers.tolist() == [5, 1, 0, 4, 3, 2, 6]
    assert "'01', '1' are different users" in note_names_alike("u", read, "users")[0]
    assert read_names_of_column(PATH, "u", column("b", "10", "9")).names == ("10", "9", "b")


@pytest.mark.parametrize("word", ["نمی\u200cدانم", "ක්\u200dෂය", "type\u00a02"])
def test_joiners_and_blanks_are_parts_of_words(word: str) -> None:
    assert read_names_of_column(PATH, "u", column(word, "a")).names == ("a", word)


@pytest.mark.parametrize("word", ["a\u202eb", "a\x1b[0m", "a\nb", "x" * 101])
def test_refuses_names_that_could_change_a_page(word: str) -> None:
    with pytest.raises(DataError, match="is not a valid name"):
        read_names_of_column(PATH, "u", column(word))


def test_forms_of_unicode_are_one_name_and_told() -> None:
    other = unicodedata.normalize("NFD", "bénin")
    read = read_names_of_column(PATH, "u", column("bénin", other, "malin"))
    assert read.names == ("bénin", "malin")
    assert read.numbers.tolist() == [0, 0, 1]
    assert "several forms of Unicode" in read.notes[0]
    # A single form stays as it is written.
    assert read_names_of_column(PATH, "u", column(other)).names == (other,)


def test_spellings_of_a_label_are_refused_or_merged() -> None:
    labels = column("sick", "well", "Sick ", "sick", "well.")
    with pytest.raises(DataError, match="'sick', 'Sick ', which differ by blanks"):
        refuse_spellings(PATH, "y", labels)
    merged, notes = merge_spellings(labels)
    assert merged.cells() == ["sick", "well", "sick", "sick", "well"]
    assert len(notes) == 2
    refuse_spellings(PATH, "y", column("A+", "A", ".", ".."))
