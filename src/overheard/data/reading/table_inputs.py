"""The inputs of a custom table: which columns they are, of which kind, on which scale."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64, Int64
from torch import Tensor

from overheard.core.errors import DataError
from overheard.data.dataset import ReadColumn
from overheard.data.reading.scales import Scale, rescale
from overheard.data.reading.table_names import merge_unicode_forms
from overheard.data.reading.tables import MAX_CATEGORIES
from overheard.data.reading.text_table import TextColumn, TextTable, odd_texts
from overheard.disk.limits import TABLE, refuse_large

FLOAT_BYTES = 4
"""Bytes of an input of one row."""

FEWEST_ROWS = 30
"""Rows of a table from which a column can be told to be an id."""

NEARLY_ALL = 0.9
"""Share of rows with different values in a column of names or ids."""

MAX_CODES = 10
"""Most different numbers of a column of categories, some of which are texts."""

MAX_NAMED_COLUMNS = 12
"""The most columns that one note names."""

MAX_ODD_QUOTED = 3
"""The most odd cells that a message names."""

ID_WORDS = frozenset({"id", "ids", "pid", "uid", "idx", "index", "uuid", "guid", "mrn", "nr"})
"""Words in the name of a column of ids."""

THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?", re.ASCII)
"""A number with a comma between thousands, such as 1,234,567.8."""

DOTTED_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+", re.ASCII)
"""A whole number with a dot between thousands, or a number with three decimals."""

FEWEST_DOTTED = 5
"""Different numbers with dots from which dots are doubted to be decimal signs."""

SPACED_THOUSANDS = re.compile(
    r"[+-]?\d{1,3}([ \u00a0\u2009\u202f'\u2019]\d{3})+([.,]\d+)?", re.ASCII
)
"""A number with blanks or apostrophes between thousands, such as 1 234,5."""

COMMA_NUMBER = re.compile(
    rf"[+-]?(\d{{1,3}}(\.\d{{3}})+|\d*),\d+([eE][+-]?\d+)?|{THOUSANDS.pattern}", re.ASCII
)
"""A number with a decimal comma, such as 1.234,5, or with one between thousands."""

MISSING_CODES = (-9.0, -99.0, -999.0, -9999.0, -99999.0)
"""Numbers that often stand for a missing one where all others are 0 or more."""

Decimals = Literal["dot", "comma"]


@final
@dataclass(frozen=True, slots=True)
class InputSettings:
    """What a plan states of the inputs of a table.

    Args:
        numbers: columns that are inputs as numbers, whatever they look like; a cell that is no
            number is missing.
        categories: columns that are inputs as categories, even if all are numbers.
        left_out: columns that are no inputs.
        decimals: the decimal sign of numbers; None = found out for each column.
        scale: the scale of numbers.

    """

    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    decimals: Decimals | None = None
    scale: Scale = "standardised"


@final
@dataclass(frozen=True, slots=True, eq=False)
class NumberColumn:
    """An input of numbers; NaN = missing."""

    name: str
    numbers: Float64[np.ndarray, " rows"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class CategoryColumn:
    """Inputs of categories: one for each text."""

    name: str
    column: TextColumn


@final
@dataclass(frozen=True, slots=True, eq=False)
class TableInputs:
    """The inputs of a table, and what was found out about its columns.

    Args:
        columns: the inputs, in the order of the file.
        notes: a sentence on each column that is left out, or may not be as its owner means.

    """

    columns: tuple[NumberColumn | CategoryColumn, ...]
    notes: tuple[str, ...]


def find_inputs(
    path: Path, table: TextTable, special: tuple[str, ...], settings: InputSettings
) -> TableInputs:
    """Return the columns of a table that are inputs.

    A column of numbers is one input, a column of categories one for each category. Left out are
    columns with a different text in nearly every row, whole numbers that count rows, ids, and
    empty columns.

    Args:
        path: the file, for messages.
        table: the table.
        special: columns with a meaning of their own, which are no inputs.
        settings: what its owner states.

    Raises:
        DataError: if a column cannot be read; the message names the column and a cell.

    """
    stated = (*settings.numbers, *settings.categories, *settings.left_out)
    table.require(path, stated)
    for name in stated:
        if stated.count(name) > 1 or name in special:
            raise DataError(
                f"{path}: column {name!r} has two meanings: name it once in label, user, text, "
                "time, attributes, numbers, categories and left_out"
            )
    columns, notes = list[NumberColumn | CategoryColumn](), list[str]()
    for name, column in table.columns.items():
        if name in special:
            continue
        if name in settings.left_out:
            notes.append(f"Left out: column {name!r}, as stated.")
            continue
        reason, found = _read_column(path, name, column, settings)
        notes += reason
        if found is not None:
            columns.append(found)
    constant = [repr(one.name) for one in columns if _is_constant(one)]
    if constant:
        shown = ", ".join(constant[:MAX_NAMED_COLUMNS])
        more = len(constant) - MAX_NAMED_COLUMNS
        notes.append(
            f"The same value in all rows, which tells nothing: {shown}"
            f"{f' and {more} more' if more > 0 else ''}."
        )
    return TableInputs(tuple(columns), tuple(notes))


def _is_constant(one: "NumberColumn | CategoryColumn") -> bool:
    if isinstance(one, CategoryColumn):
        return len(one.column.texts) == 1
    present = one.numbers[~np.isnan(one.numbers)]
    return bool((present == present[0]).all())


def note_copies_of_labels(
    inputs: TableInputs, labels: Int64[np.ndarray, " rows"]
) -> tuple[str, ...]:
    """Return a note on each column whose few values always say the label."""
    notes = list[str]()
    for one in inputs.columns:
        if isinstance(one, NumberColumn):
            values, codes = np.unique(one.numbers, return_inverse=True)
            most = MAX_CODES
        else:
            values, codes = np.unique(one.column.codes, return_inverse=True)
            most = len(labels) // 2 - 1
        if 1 < len(values) <= most:
            pairs = np.unique(codes * (labels.max() + 1) + labels)
            if len(pairs) == len(values) and labels.any():
                notes.append(
                    f"Column {one.name!r} tells the label: all rows with a value have the same "
                    "one. If it is the label in other words, set left_out."
                )
    return tuple(notes)


def encode_inputs(
    path: Path, inputs: TableInputs, is_fit: Bool[np.ndarray, " rows"], scale: Scale
) -> tuple[Float32[Tensor, "rows inputs"], tuple[ReadColumn, ...]]:
    """Return the inputs as numbers, and what became of each column.

    Scale and categories are those of the rows marked by `is_fit`. A missing number becomes the
    mean of its column, a missing category a category of its own, and a category of no such row
    is all 0.

    Raises:
        DataError: if a column has too many categories, or numbers that are too large, or if
            all inputs together take too much memory.

    """
    widths = [
        1 if isinstance(one, NumberColumn) else min(MAX_CATEGORIES, len(one.column.texts))
        for one in inputs.columns
    ]
    memory = FLOAT_BYTES * sum(widths) * len(is_fit)
    refuse_large(f"{path}: the encoding as {sum(widths)} inputs", memory, DataError, part=TABLE)
    parts, read = list[Float32[np.ndarray, "rows inputs"]](), list[ReadColumn]()
    for one in inputs.columns:
        if isinstance(one, NumberColumn):
            parts.append(_encode_numbers(path, one, is_fit, scale)[:, None])
            low, high = float(np.nanmin(one.numbers)), float(np.nanmax(one.numbers))
            read.append(ReadColumn(one.name, "number", 1, (low, high)))
        else:
            parts.append(_encode_categories(path, one, is_fit))
            read.append(ReadColumn(one.name, "category", parts[-1].shape[1]))
    if not parts:
        raise DataError(f"{path} has no column left to learn from: add one")
    return torch.from_numpy(np.concatenate(parts, axis=1)), tuple(read)


def parse_numbers(
    path: Path, name: str, column: TextColumn, decimals: Decimals | None
) -> tuple[Float64[np.ndarray, " texts"], tuple[str, ...]]:
    """Return the number that each text stands for, NaN for one that is no number; and notes.

    Raises:
        DataError: if commas or dots could be decimal signs as well as signs between thousands.

    """
    plain = [text.strip() for text in column.texts]
    is_spaced = [SPACED_THOUSANDS.fullmatch(text) is not None for text in plain]
    if any(is_spaced):
        plain = [
            re.sub(r"[^\d.,+-]", "", text) if spaced else text
            for text, spaced in zip(plain, is_spaced, strict=True)
        ]
        numbers, notes = _parse_plain(path, name, column, plain, decimals)
        told = f"Column {name!r} has blanks or apostrophes between thousands."
        return numbers, (told, *notes)
    return _parse_plain(path, name, column, plain, decimals)


def _parse_plain(
    path: Path, name: str, column: TextColumn, plain: list[str], decimals: Decimals | None
) -> tuple[Float64[np.ndarray, " texts"], tuple[str, ...]]:
    """Return the numbers of these texts, which stand for those of a column; and notes."""
    dotted = [text for text in plain if "." in text and "," not in text]
    may_be_thousands = bool(dotted) and all(map(DOTTED_THOUSANDS.fullmatch, dotted))
    if may_be_thousands and decimals is None:
        is_sure = any(text.count(".") > 1 for text in dotted)
        if not is_sure and len(dotted) >= FEWEST_DOTTED and any(map(_is_below_thousand, plain)):
            raise DataError(
                f"{path}: column {name!r} has {dotted[0]!r}, whose dot may be a decimal sign "
                'or stand between thousands: set decimals = "dot" or decimals = "comma" in the '
                "plan's source"
            )
        if is_sure:
            numbers = _to_numbers([text.replace(".", "").replace(",", ".") for text in plain])
            return numbers, (f"Column {name!r} has dots between thousands.",)
    if decimals == "comma":
        if may_be_thousands:
            plain = [text.replace(".", "") for text in plain]
        return _to_numbers(list(map(_without_decimal_comma, plain))), ()
    numbers = _to_numbers(plain)
    odd = [text for text, one in zip(plain, numbers.tolist(), strict=True) if np.isnan(one)]
    with_comma = [text for text in odd if COMMA_NUMBER.fullmatch(text)]
    if not with_comma or len(with_comma) < NEARLY_ALL * sum("," in text for text in odd):
        return numbers, ()
    if decimals == "dot":
        return _to_numbers([text.replace(",", "") for text in plain]), ()
    if all(THOUSANDS.fullmatch(text) for text in with_comma):
        raise DataError(
            f"{path}: column {name!r} has {with_comma[0]!r}, whose comma may be a decimal sign "
            'or stand between thousands: set decimals = "comma" or decimals = "dot" in the '
            "plan's source"
        )
    is_comma = np.isin(plain, with_comma)
    cells, present = (
        int(column.counts()[mask].sum()) for mask in (is_comma, ~column.missing())
    )
    told = f"Column {name!r} has decimal commas"
    if 2 * cells < present:
        told += f" in {cells} of {present} cells: {', '.join(odd_texts(column, is_comma, 1))}"
    return _to_numbers(list(map(_without_decimal_comma, plain))), (f"{told}.",)


def _is_below_thousand(text: str) -> bool:
    return re.fullmatch(r"[+-]?[1-9]\d{0,2}", text, re.ASCII) is not None


def _without_decimal_comma(text: str) -> str:
    """Return a number with a decimal point; dots between thousands are left out.

    >>> _without_decimal_comma("1.234,5")
    '1234.5'
    """
    return text.replace(".", "").replace(",", ".") if "," in text else text


def _to_numbers(texts: list[str]) -> Float64[np.ndarray, " texts"]:
    import pandas as pd

    numbers = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce")
    found: Float64[np.ndarray, " texts"] = numbers.to_numpy(np.float64)
    return found


def _read_column(
    path: Path, name: str, column: TextColumn, settings: InputSettings
) -> tuple[tuple[str, ...], NumberColumn | CategoryColumn | None]:
    """Return notes on a column, and the inputs that it is; None = it is left out."""
    missing, counts = column.missing(), column.counts()
    rows = int(counts.sum())
    present = int(counts[~missing].sum())
    if not present:
        return (f"Left out: column {name!r}, which is empty.",), None
    if name in settings.categories:
        return (), CategoryColumn(name, column)
    if column.is_category and name not in settings.numbers:
        told = f"Column {name!r} is read as categories, as the file stores it."
        return (told,), CategoryColumn(name, column)
    numbers, notes = parse_numbers(path, name, column, settings.decimals)
    numbers = _with_booleans(column, numbers)
    odd = np.isnan(numbers) & ~missing
    is_stated = name in settings.numbers
    if is_stated and odd.any():
        if odd[~missing].all():
            raise DataError(f"{path}: column {name!r} of numbers holds none: correct numbers")
        notes += (
            f"Column {name!r}: {int(counts[odd].sum())} cells that are no numbers count as "
            f"missing, such as {', '.join(odd_texts(column, odd, 1))}.",
        )
    elif odd.any():
        _refuse_odd_cells(path, name, column, odd, missing)
        return _read_categories(name, column, missing, odd)
    if np.isinf(numbers).any():
        cell = next(odd_texts(column, np.isinf(numbers), 1))
        raise DataError(f"{path}: column {name!r} has infinity, {cell}: leave the cell empty")
    values = numbers[column.codes]
    if not is_stated and (reason := _why_an_id(name, column, values, present)):
        return (f"Left out: column {name!r}, {reason}.",), None
    if gaps := rows - int((~np.isnan(values)).sum()):
        notes += (f"Column {name!r}: {gaps} of {rows} cells are missing.",)
    return (*notes, *_notes_on_numbers(name, column, numbers, present)), NumberColumn(
        name, values
    )


def _with_booleans(
    column: TextColumn, numbers: Float64[np.ndarray, " texts"]
) -> Float64[np.ndarray, " texts"]:
    """Return 1 for true and 0 for false if a column has nothing else."""
    truths = {"true": 1.0, "false": 0.0}
    plain = [text.strip().casefold() for text in column.texts]
    if not all(
        text in truths or missing for text, missing in zip(plain, column.missing(), strict=True)
    ):
        return numbers
    return np.array([truths.get(text, np.nan) for text in plain])


def _refuse_odd_cells(
    path: Path,
    name: str,
    column: TextColumn,
    odd: Bool[np.ndarray, " texts"],
    missing: Bool[np.ndarray, " texts"],
) -> None:
    """Refuse a column of numbers with a few cells that are none.

    Raises:
        DataError: if half of the cells or more are numbers, and they are no codes.

    """
    counts = column.counts()
    is_number = ~odd & ~missing
    numbers, different = int(counts[is_number].sum()), int(is_number.sum())
    present = int(counts[~missing].sum())
    if 2 * numbers < present or different <= min(MAX_CODES, present // 2):
        return
    more = int(odd.sum()) - MAX_ODD_QUOTED
    others = f", and {more} others" if more > 0 else ""
    raise DataError(
        f"{path}: column {name!r} holds numbers, but also "
        f"{', '.join(odd_texts(column, odd, MAX_ODD_QUOTED))}{others}: correct them, or set "
        f'numbers = ["{name}"] in the plan\'s source to count them as missing, categories = '
        f'["{name}"] if all are codes, or left_out = ["{name}"]'
    )


def _read_categories(
    name: str,
    column: TextColumn,
    missing: Bool[np.ndarray, " texts"],
    odd: Bool[np.ndarray, " texts"],
) -> tuple[tuple[str, ...], CategoryColumn | None]:
    counts = column.counts()
    present, different = int(counts[~missing].sum()), int((~missing).sum())
    if present >= FEWEST_ROWS and different >= NEARLY_ALL * present:
        reason = f"with {different} different texts in {present} rows, which names rows"
        told = f"Left out: column {name!r}, {reason}, such as {next(odd_texts(column, odd, 1))}"
        return (f"{told}. If they are numbers or dates, convert them.",), None
    notes = list[str]()
    if 2 * int(counts[odd].sum()) <= present:
        notes.append(
            f"Column {name!r} is read as categories, as it holds "
            f"{', '.join(odd_texts(column, odd, 1))} among few different numbers."
        )
    with_digits = sum(any(map(str.isdigit, text)) for text in column.texts)
    is_measured = different > MAX_CODES and with_digits >= NEARLY_ALL * different
    if is_measured or (present >= FEWEST_ROWS and 2 * different >= present):
        notes.append(
            f"Column {name!r} becomes {different} inputs, one for each text, such as "
            f"{', '.join(odd_texts(column, odd, 1))}: if they are numbers or dates, convert "
            "them; if they are names, set left_out."
        )
    column, merged = merge_unicode_forms(name, column)
    return (*notes, *merged), CategoryColumn(name, column)


def _why_an_id(
    name: str, column: TextColumn, values: Float64[np.ndarray, " rows"], present: int
) -> str:
    """Return why a column of numbers is no input; "" = it is one."""
    rows, different = len(values), len(np.unique(values[~np.isnan(values)]))
    if rows < FEWEST_ROWS or different < NEARLY_ALL * present or (values % 1 != 0).any():
        return ""
    if name.startswith(("Unnamed: ", "__index_level_")):
        return "the stored index of the table"
    if _is_named_as_ids(name):
        return f"whose name says that it holds ids ({different} different in {rows} rows)"
    steps = np.diff(values)
    if different == rows and (
        values.max() - values.min() == rows - 1 or (steps > 0).all() or (steps < 0).all()
    ):
        return "whose whole numbers count the rows"
    return ""


def _is_named_as_ids(name: str) -> bool:
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    return any(word.casefold() in ID_WORDS for word in (*words, name))


def _notes_on_numbers(
    name: str, column: TextColumn, numbers: Float64[np.ndarray, " texts"], present: int
) -> tuple[str, ...]:
    """Return notes on numbers that may be codes, ids or nothing at all."""
    found = numbers[~np.isnan(numbers)]
    different = len(np.unique(found))
    notes = list[str]()
    is_whole = bool((found % 1 == 0).all())
    if found.min() in MISSING_CODES and (rest := found[found != found.min()]).size:
        cells = int(column.counts()[numbers == found.min()].sum())
        if cells > 1 and rest.min() >= 0:
            notes.append(
                f"Column {name!r}: {found.min():g} stands in {cells} cells and is read as a "
                "number: if it stands for a missing one, leave these cells empty."
            )
    if any(re.fullmatch(r"0\d+", text) for text in column.texts) and is_whole:
        notes.append(
            f"Column {name!r} has numbers that begin with 0: if they are codes, set categories."
        )
    elif is_whole and present >= FEWEST_ROWS and different >= NEARLY_ALL * present:
        notes.append(
            f"Column {name!r} has a different whole number in nearly every row: if these are "
            "ids, set left_out."
        )
    elif is_whole and _is_named_as_ids(name) and different > 2:
        notes.append(
            f"Column {name!r} is read as numbers, but its name says that it holds ids: name it "
            "as user, or set left_out."
        )
    return tuple(notes)


def _encode_numbers(
    path: Path, one: NumberColumn, is_fit: Bool[np.ndarray, " rows"], scale: Scale
) -> Float32[np.ndarray, " rows"]:
    try:
        scaled = rescale(one.numbers[:, None], one.numbers[is_fit][:, None], scale)[:, 0]
    except ValueError as error:
        raise DataError(f"{path}: column {one.name!r} {error}") from error
    return scaled.astype(np.float32)


def _encode_categories(
    path: Path, one: CategoryColumn, is_fit: Bool[np.ndarray, " rows"]
) -> Float32[np.ndarray, "rows inputs"]:
    texts = np.array([""]) if not one.column.texts else one.column.texts
    fitted = sorted(texts[code] for code in np.unique(one.column.codes[is_fit]).tolist())
    if len(fitted) > MAX_CATEGORIES:
        raise DataError(
            f"{path}: column {one.name!r} has {len(fitted)} different strings, but a "
            f"column of categories may have {MAX_CATEGORIES}: set left_out, or name it as the "
            "text column"
        )
    place = {text: number for number, text in enumerate(fitted)}
    # Texts outside of the fitted rows get the last row, which is all 0.
    indicators = np.vstack(
        [np.eye(len(fitted), dtype=np.float32), np.zeros((1, len(fitted)), np.float32)]
    )
    places = np.array([place.get(text, len(fitted)) for text in one.column.texts])
    encoded: Float32[np.ndarray, "rows inputs"] = indicators[places[one.column.codes]]
    return encoded
