"""A reader of untrusted tables, and conversions of their columns to inputs and labels."""

import gzip
import io
import warnings
import zlib
from collections import Counter
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int64
from torch import Tensor

from overheard.core.errors import DataError
from overheard.data.reading.arrays import checked_names
from overheard.data.reading.parquet_tables import CELL_BYTES, read_parquet
from overheard.disk.limits import TABLE, refuse_large, refuse_sparse, unpack_limit

if TYPE_CHECKING:  # pandas is large, and most audits read no table
    import pandas

MAX_COLUMNS = 20_000
"""The most columns of a file."""

MAX_CATEGORIES = 1000
"""Largest number of different strings in a column of categories. A column with more is taken
for names or texts, which cannot be one-hot encoded."""


def read_table(
    path: Path, *, column_names: tuple[str, ...] = (), skipped_lines: int = 0
) -> "pandas.DataFrame":
    """Read the table in a `.csv`, `.csv.gz`, `.data`, `.test` or `.parquet` file.

    Only an empty cell counts as missing: `?`, `NA` and `None` may be real values.

    Args:
        path: the file.
        column_names: column names of a CSV file without a header line.
        skipped_lines: lines to skip at the start of a CSV file.

    Raises:
        DataError: if the file is damaged or too large, or a column has neither numbers nor
            strings.

    """
    import pandas as pd
    import pyarrow as pa

    try:
        if path.suffix == ".parquet":
            table = read_parquet(path).to_pandas(ignore_metadata=True)
        else:
            table = _read_csv(path, column_names, skipped_lines)
    # Pandas' errors and most of Arrow's are ValueErrors.
    except (
        OSError,
        EOFError,
        ValueError,
        OverflowError,
        zlib.error,
        pa.ArrowException,
        pd.errors.ParserWarning,
    ) as failure:
        raise DataError(
            f"{path} cannot be read as a table ({failure}): correct it or get a new copy"
        ) from failure
    if not len(table) or not table.columns.is_unique:
        raise DataError(f"{path} must have rows, and columns with different names: correct it")
    return pd.DataFrame({str(name): _plain_column(path, table[name]) for name in table.columns})


def read_unpacked(path: Path) -> bytes:
    """Read the bytes of a file, unpacked if it ends in `.gz`.

    Raises:
        DataError: if there are none, too many, or too many for the size of the file.

    """
    refuse_sparse(path, DataError)
    packed = path.stat().st_size
    # So are the files of /proc, some of which wait for ever when they are read.
    if not packed:
        raise DataError(f"{path} is empty: get a new copy")
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        content = stream.read(unpack_limit(packed, TABLE) + 1)
    refuse_large(str(path), len(content), DataError, part=TABLE, packed=packed)
    return content


def table_memory(content: bytes) -> int:
    """Return an estimate of the bytes of memory that the cells of a CSV file take."""
    cells = sum(content.count(sign) for sign in (b",", b";", b"\t", b"|", b"\n"))
    return len(content) + CELL_BYTES * cells


def name_columns(path: Path, lines: list[list[str]]) -> list[str]:
    """Return the names of columns.

    Args:
        path: the file, for messages.
        lines: by column, its cells in the lines of the header.

    Raises:
        DataError: if two columns have one name.

    """
    names = []
    for number, cells in enumerate(lines):
        parts = [cell.strip() for cell in cells]
        # Pandas calls a column without a name like this.
        names.append(" ".join(filter(None, parts)) or f"Unnamed: {number}")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise DataError(
            f"{path} must have columns with different names, but {name!r} is there twice: "
            "correct it; if its first line holds no names, set header_lines = 0 in the plan's "
            "source"
        )
    return names


def require_columns(path: Path, table: "pandas.DataFrame", columns: tuple[str, ...]) -> None:
    """Refuse a table without one of these columns.

    Raises:
        DataError: if one is missing; the message names the missing and the existing columns.

    """
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise DataError(
            f"{path} has no column {', '.join(map(repr, missing))}; it has "
            f"{', '.join(map(repr, table.columns))}"
        )


def encode_columns(
    path: Path | str, table: "pandas.DataFrame", fitted_to: "pandas.DataFrame"
) -> Float32[Tensor, "examples columns"]:
    """Encode the columns as numbers, on the scale of the table `fitted_to`.

    A column of numbers is standardised by the mean and deviation of `fitted_to`; a missing
    cell becomes 0. A column of strings is one-hot encoded by its sorted values in `fitted_to`;
    a missing cell is a value of its own, and a value not in `fitted_to` is all 0.

    Raises:
        DataError: if a column cannot be encoded.

    """
    import pandas as pd

    parts = []
    for name in fitted_to.columns:
        column, fit = table[name], fitted_to[name]
        if pd.api.types.is_numeric_dtype(fit):
            parts.append(_standardise(path, column, fit))
        else:
            parts.append(_one_hot(path, column, fit))
    if not parts:
        raise DataError(f"{path} has no column left to learn from: add one")
    return torch.from_numpy(np.concatenate(parts, axis=1).astype(np.float32))


def integer_column(
    path: Path, table: "pandas.DataFrame", column: str, below: int
) -> Int64[np.ndarray, " examples"]:
    """Return a column of whole numbers from 0 to `below` - 1, such as labels.

    Raises:
        DataError: if a cell is missing or not such a number.

    """
    import pandas as pd

    require_columns(path, table, (column,))
    cells = table[column]
    if not pd.api.types.is_integer_dtype(cells) or cells.min() < 0 or cells.max() >= below:
        raise DataError(
            f"{path}: column {column!r} must hold whole numbers from 0 to {below - 1}, without "
            "missing cells"
        )
    return cells.to_numpy(np.int64, copy=True)


def text_column(path: Path, table: "pandas.DataFrame", column: str) -> list[str]:
    """Return a column of texts; an empty cell is an empty text.

    Raises:
        DataError: if the column has numbers.

    """
    import pandas as pd

    require_columns(path, table, (column,))
    cells = table[column]
    if pd.api.types.is_numeric_dtype(cells):
        raise DataError(f"{path}: column {column!r} must hold texts, but has numbers")
    return cells.fillna("").tolist()


@dataclass(frozen=True, slots=True)
class CategoricalColumn:
    """A column of categories.

    Args:
        numbers: the number of each cell's category.
        names: the names of the categories.
        notes: a sentence on each thing that may not be as its owner means it.

    """

    numbers: Int64[Tensor, " examples"]
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def categorical_column(path: Path, table: "pandas.DataFrame", column: str) -> CategoricalColumn:
    """Return a column of labels or users, numbered in the sorted order of its cells.

    Raises:
        DataError: if a cell is missing, or a name is not printable or too long.

    """
    require_columns(path, table, (column,))
    cells = table[column]
    if cells.isna().any():
        raise DataError(f"{path}: column {column!r} must not have empty cells: drop those rows")
    different, numbers = np.unique(cells.to_numpy(), return_inverse=True)
    names = checked_names(path, column, [str(name) for name in different.tolist()])
    return CategoricalColumn(torch.from_numpy(numbers.astype(np.int64)), names)


def _read_csv(
    path: Path, column_names: tuple[str, ...], skipped_lines: int
) -> "pandas.DataFrame":
    import pandas as pd

    content = read_unpacked(path)
    refuse_large(str(path), table_memory(content), DataError, part=TABLE)
    with warnings.catch_warnings():
        # Pandas only warns if a row is longer than the header, and cuts it.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        return pd.read_csv(
            io.BytesIO(content),
            header=None if column_names else 0,
            names=list(column_names) or None,
            skiprows=skipped_lines,
            skipinitialspace=True,
            keep_default_na=False,
            na_values=[""],
            low_memory=False,
            index_col=False,
        )


def _plain_column(path: Path, column: "pandas.Series") -> "pandas.Series":
    """Return the column as plain numbers or strings; dates become ISO strings."""
    import pandas as pd

    if pd.api.types.is_bool_dtype(column):
        return column.astype(np.int64)
    if pd.api.types.is_integer_dtype(column):
        return column.astype(np.int64)
    if pd.api.types.is_float_dtype(column):
        if bool(np.isinf(column.to_numpy(np.float64)).any()):
            raise DataError(
                f"{path}: column {column.name!r} has infinity: leave the cell empty"
            )
        return column.astype(np.float64)
    present = column.dropna()
    if len(present) and present.map(lambda cell: isinstance(cell, date)).all():
        return column.map(lambda cell: cell.isoformat(), na_action="ignore")
    if not present.map(lambda cell: isinstance(cell, str)).all():
        raise DataError(
            f"{path}: column {column.name!r} has neither numbers, strings nor dates: convert "
            "or drop it"
        )
    return column


def _standardise(
    path: Path | str, column: "pandas.Series", fit: "pandas.Series"
) -> Float64[np.ndarray, "examples columns"]:
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(column):
        raise DataError(
            f"{path}: column {fit.name!r} has strings among its numbers: correct it"
        )
    present = fit.to_numpy(np.float64)
    present = present[~np.isnan(present)]
    if not len(present):
        raise DataError(f"{path}: column {fit.name!r} is empty: drop it")
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = present.mean(), present.std()
    if not np.isfinite(deviation):
        raise DataError(
            f"{path}: column {fit.name!r} has numbers too large to standardise: rescale it"
        )
    # A constant column becomes 0.
    standard = (column.to_numpy(np.float64) - mean) / (deviation if deviation > 0 else 1)
    numbers: Float64[np.ndarray, "examples columns"] = np.nan_to_num(standard, nan=0.0)[:, None]
    return numbers


def _one_hot(
    path: Path | str, column: "pandas.Series", fit: "pandas.Series"
) -> Float64[np.ndarray, "examples columns"]:
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        column = column.astype(str)
    categories = sorted(fit.fillna("").unique())
    if len(categories) > MAX_CATEGORIES:
        raise DataError(
            f"{path}: column {fit.name!r} has {len(categories)} different strings, but a "
            f"column of categories may have {MAX_CATEGORIES}: drop it, or name it as the text "
            "column"
        )
    cells = column.fillna("").to_numpy(object)
    indicators = [cells == category for category in categories]
    return np.stack(indicators, axis=1).astype(np.float64)
