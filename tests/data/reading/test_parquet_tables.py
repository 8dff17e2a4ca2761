import contextlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from overheard.core.errors import DataError
from overheard.data.reading.parquet_tables import read_parquet


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
