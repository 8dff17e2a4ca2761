"""A reader of untrusted Parquet files, which checks what they unpack to before it does so."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from overheard.core.errors import DataError
from overheard.data.reading.parquet_headers import Footer
from overheard.disk.limits import TABLE, refuse_large, refuse_sparse

if TYPE_CHECKING:  # pyarrow is large, and most audits read no table
    import pyarrow
    import pyarrow.parquet

CELL_BYTES = 8
"""Bytes of memory that a cell takes beside its text."""


def read_parquet(path: Path) -> "pyarrow.Table":
    """Read a `.parquet` file, after a look at its size unpacked.

    A file stores a text once, however many rows have it. So texts are read as numbers of
    different ones, and their total length is checked before they are written out.

    Raises:
        DataError: if it is too large, a column has lists or other nested values, or two columns
            have one name.
        ValueError: if it is damaged; so are Arrow's errors.

    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    refuse_sparse(path, DataError)
    packed = path.stat().st_size
    refuse_large(str(path), packed, DataError, part=TABLE)

    def check(memory: int) -> None:
        refuse_large(str(path), memory, DataError, part=TABLE, packed=packed)

    with path.open("rb") as stream:
        footer = Footer(stream.read(packed), check)
    source = pa.py_buffer(footer.plain_file())
    with pq.ParquetFile(source, pre_buffer=False) as file:
        schema = file.schema_arrow
    for field in schema:
        if _is_no_value(field.type):
            raise DataError(
                f"{path}: column {field.name!r} has neither numbers, strings nor dates: "
                "convert or drop it"
            )
    memory = footer.memory + CELL_BYTES * footer.cells()
    check(memory)
    memory += footer.page_memory()
    check(memory)
    # The copy with a plain footer is enough.
    del footer
    texts = [field.name for field in schema if is_text(field.type)]
    with pq.ParquetFile(source, read_dictionary=texts, pre_buffer=False) as file:
        table = file.read()
    if len(set(table.column_names)) != table.num_columns:
        raise DataError(f"{path} must have columns with different names: correct it")
    check(memory + sum(_text_bytes(column) for column in table.columns))
    plain = [
        column.cast(field.type) if column.type != field.type else column
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(plain, schema=schema)


def _is_no_value(kind: "pyarrow.DataType") -> bool:
    """Return whether a type is of lists, of other nested values, or of bytes."""
    import pyarrow as pa

    return bool(
        pa.types.is_nested(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def is_text(kind: "pyarrow.DataType") -> bool:
    """Return whether a type is of texts."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _text_bytes(column: "pyarrow.ChunkedArray") -> int:
    """Return the bytes of all texts of a column, written out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type) or not is_text(column.type.value_type):
        return 0
    total = 0
    for chunk in column.chunks:
        lengths = pc.binary_length(chunk.dictionary).to_numpy(zero_copy_only=False)
        codes = chunk.indices.drop_null().to_numpy(zero_copy_only=False)
        counts = np.bincount(codes, minlength=len(lengths))
        total += int(counts.astype(np.float64) @ lengths.astype(np.float64))
    return total
