"""Reads tables that are neither CSV nor Parquet: sheets of Excel, ARFF, texts of LEAF."""

import io
import zipfile
from collections.abc import Callable, Mapping
from math import isnan
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from overheard.archive.excerpt import printable_excerpt
from overheard.core.errors import DataError
from overheard.data.reading.formats.leaf import read_leaf_table
from overheard.data.reading.parquet_tables import CELL_BYTES
from overheard.data.reading.tables import MAX_COLUMNS, name_columns, read_unpacked, table_memory
from overheard.disk.limits import TABLE, refuse_large

if TYPE_CHECKING:  # pyarrow is large, and most audits read no table
    import pyarrow


def read_sheet(path: Path, header_lines: int) -> "tuple[pyarrow.Table, tuple[str, ...]]":
    """Return the first sheet of an `.xlsx` workbook, and a note if there are more.

    Formulas count by the value that was stored with them.

    Raises:
        DataError: if it is no workbook, too large, or openpyxl is not installed.

    """
    try:
        from openpyxl import load_workbook
    except ModuleNotFoundError as error:
        raise DataError(
            "reading .xlsx files needs the package openpyxl: install overheard[sheets]"
        ) from error
    content = read_unpacked(path)
    _refuse_large_workbook(path, content)
    # It raises errors of the XML and of the archive, of many kinds.
    try:
        book = load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        sheet = book.worksheets[0]
        rows = [
            row
            for row in sheet.iter_rows(values_only=True)
            if any(cell is not None for cell in row)
        ]
        names = book.sheetnames
    except Exception as error:
        raise DataError(
            f"{path} cannot be read as a workbook ({printable_excerpt(str(error))}): save it "
            "again, or save the sheet as .csv"
        ) from error
    notes = tuple[str, ...]()
    if len(names) > 1:
        notes = (f"Of {len(names)} sheets the first, {names[0]!r}, was read.",)
    return _table_of_rows(path, rows, header_lines), notes


def _refuse_large_workbook(path: Path, content: bytes) -> None:
    """Refuse a workbook whose parts unpack to too much, before any is unpacked."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(one.file_size for one in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DataError(f"{path} is no .xlsx workbook ({error}): save it again") from error
    # A cell takes about ten letters of XML, and some objects of Python.
    memory = size * CELL_BYTES // 10
    refuse_large(f"{path}: its sheets", memory, DataError, part=TABLE, packed=len(content))


def _table_of_rows(
    path: Path, rows: list[tuple[object, ...]], header_lines: int
) -> "pyarrow.Table":
    import pyarrow as pa

    width = max(map(len, rows), default=0)
    if not 1 <= width <= MAX_COLUMNS or len(rows) <= header_lines:
        raise DataError(f"{path} must have rows, and 1 to {MAX_COLUMNS} columns: correct it")
    cells = [[_text(one) for one in row] + [""] * (width - len(row)) for row in rows]
    names = list(map(str, range(width)))
    if header_lines:
        names = name_columns(path, list(map(list, zip(*cells[:header_lines], strict=True))))
    columns = zip(*cells[header_lines:], strict=True)
    return pa.table(
        {name: pa.array(one, pa.string()) for name, one in zip(names, columns, strict=True)}
    )


def _text(cell: object) -> str:
    """Return a cell as a table in text would have it; whole numbers have no point."""
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    return str(cell)


def read_arff(path: Path, header_lines: int) -> "tuple[pyarrow.Table, tuple[str, ...]]":
    """Return the table in an `.arff` file, whose names are in its head.

    Raises:
        DataError: if it is damaged, or has texts or dates, which scipy does not read.

    """
    import pyarrow as pa
    from scipy.io import arff

    content = read_unpacked(path)
    refuse_large(str(path), table_memory(content), DataError, part=TABLE)
    # Its parser raises errors of many kinds.
    try:
        rows, meta = arff.loadarff(io.StringIO(content.decode("utf-8-sig")))
        columns = {
            name: [_plain(cell) for cell in rows[name].tolist()] for name in meta.names()
        }
    except Exception as error:
        raise DataError(
            f"{path} cannot be read as ARFF ({printable_excerpt(str(error))}): texts and dates "
            "are not read; save the table as .csv"
        ) from error
    return pa.table({name: pa.array(one, pa.string()) for name, one in columns.items()}), ()


def _plain(cell: object) -> str:
    if isinstance(cell, bytes):
        return cell.decode()
    return "" if isinstance(cell, float) and isnan(cell) else _text(cell)


READERS: "Mapping[str, Callable[[Path, int], tuple[pyarrow.Table, tuple[str, ...]]]]" = (
    MappingProxyType({".xlsx": read_sheet, ".arff": read_arff, ".json": read_leaf_table})
)
"""Readers of tables by the suffix of their files."""
