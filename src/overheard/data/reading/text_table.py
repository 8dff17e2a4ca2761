"""A reader of a custom table, whose cells stay the texts that they are in the file."""

import codecs
import csv
import io
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Bool, Int64

from overheard.archive.excerpt import printable_excerpt
from overheard.core.errors import DataError
from overheard.data.reading.formats.blank_separated import (
    NOTE,
    is_blank_separated,
    read_blank_separated,
    words_of,
)
from overheard.data.reading.other_tables import READERS
from overheard.data.reading.parquet_tables import read_parquet
from overheard.data.reading.tables import MAX_COLUMNS, name_columns, read_unpacked, table_memory
from overheard.disk.limits import TABLE, refuse_large

if TYPE_CHECKING:  # pyarrow is large, and most audits read no table
    import pyarrow

TABLE_SUFFIXES = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".data", *READERS)
"""Suffixes of the files that are read as tables."""

SEPARATORS = ("\t", ";", "|", ",")
"""Separators of cells, in the order in which they are tried. A comma comes last: commas are
also found in numbers and texts, and the others hardly ever."""

SEPARATOR_NAMES = {"\t": "tabs", ";": "semicolons", "|": "bars (|)"}

SAMPLE_BYTES, SAMPLE_LINES = 2**16, 40
"""The part of a file by which its separator is found."""

TEXT_BYTES = 72
"""Bytes of memory that a text of Python takes beside its letters, and its place in a list."""

LETTER_BYTES = 4
"""Bytes of memory of a letter in a text with letters beyond ASCII, at the most."""

BLOCK_BYTES = 2**24
"""The longest row, and so the longest cell, in bytes."""

MISSING_VALUES = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "None", "null", "NULL", "-")
"""Common spellings of a missing number."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class TextColumn:
    """The cells of a column, as they are written.

    Args:
        codes: by row, the number of its text.
        texts: the different texts.
        is_category: whether the file stores its numbers as categories.

    """

    codes: Int64[np.ndarray, " rows"]
    texts: tuple[str, ...]
    is_category: bool = False

    def cells(self) -> list[str]:
        """Return the text of each row."""
        return [self.texts[code] for code in self.codes.tolist()]

    def counts(self) -> Int64[np.ndarray, " texts"]:
        """Return the number of rows with each text."""
        return np.bincount(self.codes, minlength=len(self.texts))

    def row_of(self, text: int) -> int:
        """Return the first row with a text, counted from 1."""
        return int((self.codes == text).argmax()) + 1

    def missing(self) -> Bool[np.ndarray, " texts"]:
        """Mark the texts that stand for a missing value."""
        return np.array([text.strip() in MISSING_VALUES for text in self.texts], np.bool_)


@final
@dataclass(frozen=True, slots=True, eq=False)
class TextTable:
    """A table of texts.

    Args:
        columns: by name, in the order of the file.
        rows: number of rows.
        notes: a sentence on each thing that was found out about the file, and not stated.

    """

    columns: Mapping[str, TextColumn]
    rows: int
    notes: tuple[str, ...]

    def require(self, path: Path, names: tuple[str, ...]) -> None:
        """Refuse a table without one of these columns.

        Raises:
            DataError: if one is missing; the message names the missing and the existing ones.

        """
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise DataError(
                f"{path} has no column {', '.join(map(repr, missing))}; it has "
                f"{printable_excerpt(', '.join(map(repr, self.columns)))}. If its first line "
                "holds no names, set header_lines = 0 in the plan's source (of init: --read "
                "'header_lines = 0'): columns are then named 0, 1, 2, ..."
            )


def read_text_table(path: Path, header_lines: int = 1) -> TextTable:
    """Read the table in a file with one of `TABLE_SUFFIXES`.

    Separator and encoding of a CSV file are found out, blanks as separators too; blanks before
    a cell are left out.

    Args:
        path: the file.
        header_lines: number of lines with names of columns in a CSV file. With 0 the names are
            0, 1, 2, ...; with 2 the two names of a column are joined by a blank.

    Raises:
        DataError: if the file is damaged or too large, if rows differ in length, if names of
            columns are not different, or if a column has lists or other nested values.

    """
    import pyarrow as pa

    # Of tables, LEAF's alone are folders.
    suffix = ".json" if path.is_dir() else path.suffix
    is_text = suffix not in (".parquet", *READERS)
    try:
        if suffix in READERS:
            table, notes = READERS[suffix](path, header_lines)
        else:
            table, notes = (
                _read_csv(path, header_lines) if is_text else (read_parquet(path), ())
            )
        unread, stored = _split_columns(path, table, is_text=is_text)
        # Each column is forgotten once its texts are read.
        del table
        columns = _text_columns(path, unread, stored, is_csv=is_text)
    # Most of Arrow's errors are ValueErrors.
    except (OSError, EOFError, ValueError, zlib.error, csv.Error, pa.ArrowException) as failure:
        raise DataError(
            f"{path} cannot be read as a table ({printable_excerpt(str(failure))}): correct it "
            "or get a new copy"
        ) from failure
    if is_text:
        _check_header(path, columns, header_lines)
    rows = len(next(iter(columns.values())).codes)
    return TextTable(columns, rows, notes)


def table_of_arrow(path: Path, table: "pyarrow.Table") -> TextTable:
    """Return a table that is in memory; raise as `read_text_table`.

    Args:
        path: what it is called in messages.
        table: the table.

    """
    import pyarrow as pa

    try:
        unread, stored = _split_columns(path, table, is_text=False)
        columns = _text_columns(path, unread, stored, is_csv=False)
    except (ValueError, pa.ArrowException) as failure:
        raise DataError(
            f"{path}: the table cannot be read ({printable_excerpt(str(failure))}): drop the "
            "columns that are lists or tables themselves"
        ) from failure
    return TextTable(columns, table.num_rows, ())


def _split_columns(
    path: Path, table: "pyarrow.Table", *, is_text: bool
) -> tuple[dict[str, "pyarrow.ChunkedArray"], frozenset[str]]:
    """Return the columns by name, and the names of those that are stored as categories."""
    if not table.num_rows:
        raise DataError(f"{path} must have rows: correct it")
    stored = frozenset[str]() if is_text else _stored_categories(table)
    return dict(zip(table.column_names, table.columns, strict=True)), stored


def _read_csv(path: Path, header_lines: int) -> tuple["pyarrow.Table", tuple[str, ...]]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    content, notes = _read_utf8(path)
    separator, start = _find_separator(content)
    lines = _first_lines(content[start : start + SAMPLE_BYTES + 1])
    rows = _first_rows(content[start : start + SAMPLE_BYTES + 1], separator, SAMPLE_LINES)
    if is_blank_separated(lines, rows, separator):
        table = read_blank_separated(path, content[start:], len(words_of(lines[0])))
        return _with_header(path, table, header_lines), (*notes, NOTE)
    width = len(rows[0]) if rows and not content.isspace() else 0
    if not 1 <= width <= MAX_COLUMNS:
        raise DataError(f"{path} must have 1 to {MAX_COLUMNS} columns: correct it")
    names = [str(number) for number in range(width)]
    source = io.BytesIO(content)
    source.seek(start)
    table = arrow_csv.read_csv(
        source,
        arrow_csv.ReadOptions(column_names=names, block_size=BLOCK_BYTES),
        arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        arrow_csv.ConvertOptions(
            column_types={name: pa.string() for name in names}, strings_can_be_null=False
        ),
    )
    last = str(table.column(width - 1)[-1]) if table.num_rows else ""
    if content.count(b'"') % 2 and content.endswith(f'"{last}'.encode()):
        raise DataError(f"{path} ends within a cell whose quote was never closed: correct it")
    if separator in SEPARATOR_NAMES:
        notes += (f"Cells are separated by {SEPARATOR_NAMES[separator]}.",)
    return _with_header(path, table, header_lines), notes


def _with_header(path: Path, table: "pyarrow.Table", header_lines: int) -> "pyarrow.Table":
    """Return a table whose columns are named by its first rows, which are taken out."""
    if not header_lines:
        return table
    head = table.slice(0, header_lines).to_pydict()
    names = name_columns(path, [head[name] for name in table.column_names])
    return table.slice(header_lines).rename_columns(names)


def _read_utf8(path: Path) -> tuple[bytes, tuple[str, ...]]:
    """Return the content of a file in UTF-8, and a note if the file is in another encoding."""
    content = read_unpacked(path)
    refuse_large(str(path), table_memory(content), DataError, part=TABLE)
    encodings = ["utf-8-sig", "cp1252"]
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings = ["utf-16"]
    elif content[:2].count(0) == 1:  # UTF-16 without a mark of its order
        encodings = ["utf-16-be" if content[0] == 0 else "utf-16-le"]
    for encoding in encodings:
        try:
            encoded = _encode_again(content, encoding)
        except UnicodeDecodeError:
            continue
        del content
        if b"\0" in encoded:
            raise DataError(f"{path} has NUL characters, which no table has: get a new copy")
        refuse_large(str(path), table_memory(encoded), DataError, part=TABLE)
        notes = (
            ()
            if encoding == "utf-8-sig"
            else (f"The file is not in UTF-8: it was read as {encoding}.",)
        )
        return encoded, notes
    raise DataError(f"{path} is neither in UTF-8 nor in cp1252: save it in UTF-8")


def _encode_again(content: bytes, encoding: str) -> bytes:
    """Return the content in UTF-8, decoded in blocks, as a text may take four times as much."""
    decoder, encoded = codecs.getincrementaldecoder(encoding)(), io.BytesIO()
    for start in range(0, len(content), BLOCK_BYTES):
        end = start + BLOCK_BYTES
        encoded.write(decoder.decode(content[start:end], end >= len(content)).encode())
    return encoded.getvalue()


def _find_separator(content: bytes) -> tuple[str, int]:
    """Return the separator of a CSV file, and where its table starts."""
    if stated := re.match(rb"sep=([\t;|,])\r?\n", content):
        return stated[1].decode(), stated.end()
    best, best_share = ",", 0.0
    for separator in SEPARATORS:
        rows = _first_rows(content, separator, SAMPLE_LINES)
        width = len(rows[0]) if rows else 0
        share = sum(len(row) == width for row in rows) / max(1, len(rows))
        if width > 1 and share > best_share:
            best, best_share = separator, share
    return best, 0


def _first_lines(content: bytes) -> list[str]:
    """Return the first lines that are not empty; the last one of a cut sample is left out."""
    sample = content[:SAMPLE_BYTES].decode(errors="ignore")
    lines = sample.splitlines()[: -1 if len(content) > SAMPLE_BYTES else None]
    return [line for line in lines if line.strip()][:SAMPLE_LINES]


def _first_rows(content: bytes, separator: str, count: int) -> list[list[str]]:
    """Return the first rows that are not empty; the last one may be cut."""
    sample = content[:SAMPLE_BYTES].decode(errors="ignore")
    is_cut = len(content) > SAMPLE_BYTES
    rows = list[list[str]]()
    try:
        for row in csv.reader(io.StringIO(sample, newline=""), delimiter=separator):
            if row:
                rows.append(row)
            if len(rows) > count:
                break
    except csv.Error:  # a cell that is far too long; Arrow says where
        pass
    return rows[:-1] if len(rows) > 1 and (is_cut or len(rows) > count) else rows


def _check_header(path: Path, columns: Mapping[str, TextColumn], header_lines: int) -> None:
    """Refuse a header line that looks like data, and data that look like a second one."""
    numbers = [name for name in columns if _is_number(name)]
    counted = [str(number) for number in range(len(columns) + 1)]
    is_counted = numbers in (counted[: len(numbers)], counted[1 : len(numbers) + 1])
    if header_lines and 2 * len(numbers) >= len(columns) and numbers and not is_counted:
        raise DataError(
            f"{path}: its first line has the numbers {printable_excerpt(', '.join(numbers))} "
            "in place of names: set header_lines = 0 in the plan's source (of init: --read "
            "'header_lines = 0'), and columns are named 0, 1, 2, ..., or add a line of names"
        )
    if header_lines != 1:
        return
    odd = [name for name, column in columns.items() if _is_odd_only_in_first_row(column)]
    if len(odd) > 1:
        raise DataError(
            f"{path}: its second line has texts in columns of numbers "
            f"({printable_excerpt(', '.join(map(repr, odd)))}): if it belongs to the names, "
            "set header_lines = 2 in the plan's source; else correct or remove it"
        )


def _is_odd_only_in_first_row(column: TextColumn) -> bool:
    """Return whether all cells but the first one are numbers."""
    first = int(column.codes[0])
    if len(column.codes) < 3 or column.missing()[first] or _is_number(column.texts[first]):
        return False
    others = [text for number, text in enumerate(column.texts) if number != first]
    return all(map(_is_number, others)) and int(column.counts()[first]) == 1


def _is_number(text: str) -> bool:
    try:
        float(text.strip().replace(",", "."))
    except ValueError:
        return False
    return True


def _stored_categories(table: "pyarrow.Table") -> frozenset[str]:
    """Return the columns that pandas stored as categories, by its notes in the file.

    Parquet has numbers in their place. Notes of another form tell nothing.
    """
    try:
        columns = table.schema.pandas_metadata["columns"]
        return frozenset(
            str(one["name"]) for one in columns if one["pandas_type"] == "categorical"
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return frozenset()


def _text_columns(
    path: Path,
    unread: dict[str, "pyarrow.ChunkedArray"],
    stored: frozenset[str],
    *,
    is_csv: bool,
) -> dict[str, TextColumn]:
    """Take all columns out of `unread`, and return their texts.

    Args:
        path: the file.
        unread: the columns by name; empty afterwards.
        stored: those that the file stores as categories.
        is_csv: whether blanks before a cell are left out.

    Raises:
        DataError: if the different texts take too much memory.

    """
    import pyarrow as pa

    memory, columns = 0, dict[str, TextColumn]()
    for name in tuple(unread):
        column = unread.pop(name)
        is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        encoded = column.cast(pa.large_string()).fill_null("").dictionary_encode()
        del column
        encoded = encoded.combine_chunks()
        memory += _text_memory(encoded.dictionary)
        refuse_large(f"{path}: the list of its different texts", memory, DataError, part=TABLE)
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        read = TextColumn(
            codes, tuple(encoded.dictionary.to_pylist()), is_number and name in stored
        )
        if is_csv and any(text.startswith(" ") for text in read.texts):
            read = merge_texts(read, [text.lstrip(" ") for text in read.texts])
        columns[name] = read
    # Arrow keeps the memory of its columns otherwise.
    pa.default_memory_pool().release_unused()
    return columns


def _text_memory(texts: "pyarrow.LargeStringArray") -> int:
    """Return the bytes of memory that these texts take in Python, at the most."""
    import pyarrow.compute as pc

    letters = pc.utf8_length(texts).to_numpy()
    is_wide = pc.binary_length(texts).to_numpy() > letters
    beside = TEXT_BYTES * len(texts)
    return beside + int(letters.sum()) + (LETTER_BYTES - 1) * int(letters[is_wide].sum())


def merge_texts(column: TextColumn, replacements: list[str]) -> TextColumn:
    """Return the column with each of its texts replaced; equal replacements become one."""
    place = {text: number for number, text in enumerate(dict.fromkeys(replacements))}
    moved = np.array([place[text] for text in replacements], np.int64)
    return TextColumn(moved[column.codes], tuple(place))


def append_texts(column: TextColumn, other: TextColumn) -> TextColumn:
    """Return a column with the cells of another one at its end."""
    number_of = {text: number for number, text in enumerate(column.texts)}
    for text in other.texts:
        number_of.setdefault(text, len(number_of))
    codes = np.array([number_of[text] for text in other.texts], np.int64)[other.codes]
    return TextColumn(
        np.concatenate((column.codes, codes)), tuple(number_of), column.is_category
    )


def odd_texts(
    column: TextColumn, is_odd: Bool[np.ndarray, " texts"], limit: int
) -> Iterator[str]:
    """Yield up to `limit` of the marked texts, each with its first row."""
    for number in is_odd.nonzero()[0][:limit].tolist():
        yield f"{printable_excerpt(column.texts[number])!r} in row {column.row_of(number)}"
