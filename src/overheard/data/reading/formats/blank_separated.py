"""Tables whose cells are separated by blanks, as the `.data` files of UCI are."""

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overheard.archive.excerpt import printable_excerpt
from overheard.core.errors import DataError
from overheard.data.reading.parquet_tables import CELL_BYTES
from overheard.data.reading.tables import MAX_COLUMNS
from overheard.disk.limits import TABLE, refuse_large

if TYPE_CHECKING:  # pyarrow is large, and most audits read no table
    import pyarrow

NOTE = "Cells are separated by blanks."

_BLANKS = re.compile(r"[ \t]+")
_NUMBERS = re.compile(
    r"[ \t]*([+-]?[0-9.]+([eE][+-]?[0-9]+)?|\?)([ \t]+[+-]?[0-9.?eE]+)+[ \t]*"
)


def is_blank_separated(
    lines: Sequence[str], rows: Sequence[Sequence[str]], separator: str
) -> bool:
    """Return whether blanks separate the cells of a table, and not the sign that was found.

    They do if each line has as many words, and either no sign separates cells, or it is a tab
    and a column by it has several numbers in each cell, as in `18.0  8  307.0<tab>"a name"`.

    Args:
        lines: the first lines with anything in them.
        rows: their cells by the sign.
        separator: the sign.

    """
    words = [words_of(line) for line in lines]
    if not words or len(words[0]) < 2 or any(len(one) != len(words[0]) for one in words):
        return False
    if all(len(row) == 1 for row in rows):
        return True
    columns = zip(*rows, strict=False)
    return separator == "\t" and any(all(map(_NUMBERS.fullmatch, column)) for column in columns)


def words_of(line: str) -> list[str]:
    r"""Return the words of a line; blanks within quotes separate none.

    >>> words_of('18.0   8 \t"a name"')
    ['18.0', '8', 'a name']
    """
    quoted = line.split('"')
    # The parts with odd numbers stand within quotes.
    quoted[::2] = [_BLANKS.sub(" ", part) for part in quoted[::2]]
    try:
        return next(csv.reader(['"'.join(quoted).strip()], delimiter=" "), [])
    except csv.Error:  # a word that is far too long
        return []


def read_blank_separated(path: Path, content: bytes, width: int) -> "pyarrow.Table":
    """Return a table of texts, whose columns are named 0, 1, 2, ...

    Args:
        path: the file, for messages.
        content: its content, in UTF-8.
        width: number of its columns.

    Raises:
        DataError: if rows differ in length, or there are too many cells.

    """
    import pandas as pd
    import pyarrow as pa

    if width > MAX_COLUMNS:
        raise DataError(f"{path} must have 1 to {MAX_COLUMNS} columns: correct it")
    # Pandas ends a row at either sign.
    rows = 1 + content.count(b"\n") + content.count(b"\r")
    memory = len(content) + CELL_BYTES * width * rows
    refuse_large(str(path), memory, DataError, part=TABLE)
    try:
        cells = pd.read_csv(
            io.BytesIO(content),
            sep=r"\s+",
            header=None,
            names=list(range(width + 1)),
            dtype=str,
            keep_default_na=False,
            na_values=[],
            low_memory=False,
            index_col=False,
        )
    except ValueError as failure:
        why = printable_excerpt(str(failure))
        raise DataError(f"{path} cannot be read as a table ({why}): correct it") from failure
    # Pandas fills short rows with empty cells, and no blank stands for one.
    is_long, is_short = cells[width] != "", cells[width - 1] == ""
    for are_wrong, what in ((is_long, "more"), (is_short, "fewer")):
        if are_wrong.any():
            row = int(are_wrong.to_numpy().argmax()) + 1
            raise DataError(
                f"{path}: row {row} has {what} cells between blanks than the first row, which "
                f"has {width}: correct it; put quotes around cells with blanks"
            )
    return pa.table({str(name): pa.array(cells[name], pa.string()) for name in range(width)})
