from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from overheard.core.errors import DataError
from overheard.data.reading.parquet_tables import read_parquet


def test_reads_texts_categories_and_numbers_as_they_are(tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": pa.array(["a", None, "a"]),
            "category": pa.array(["b", "c", "b"]).dictionary_encode(),
            "number": [1.5, 2.0, None],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    assert read_parquet(tmp_path / "t.parquet").equals(table)


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
