"""A loader of the user's own table."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, final

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int64, Shaped
from torch import Tensor

from overheard.core.errors import DataError
from overheard.core.examples import Examples, without_classes
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.task import Task, TaskKind
from overheard.data.dataset import NO_ATTRIBUTES, DataReading, Dataset, ReadColumn
from overheard.data.holdout import hold_out_fifth
from overheard.data.listed_records import MEMBER, OWNER, list_records, members_of_cells
from overheard.data.reading.arrays import checked_names
from overheard.data.reading.attributes import values_of_users
from overheard.data.reading.custom_arrays import MAX_CLASSES
from overheard.data.reading.float_labels import standardise_numbers
from overheard.data.reading.scales import SCALE_WORDS
from overheard.data.reading.table_inputs import (
    InputSettings,
    encode_inputs,
    find_inputs,
    note_copies_of_labels,
    parse_numbers,
)
from overheard.data.reading.table_names import (
    NUMBER,
    merge_spellings,
    note_names_alike,
    read_names_of_column,
    refuse_spellings,
)
from overheard.data.reading.tables import CategoricalColumn
from overheard.data.reading.text_table import (
    TextColumn,
    TextTable,
    append_texts,
    odd_texts,
    read_text_table,
)
from overheard.data.reading.texts import TextSettings, tokenise_texts
from overheard.data.reading.times import rank_times
from overheard.disk.limits import TABLE, refuse_large

if TYPE_CHECKING:  # pandas is large, and most audits read no table
    import pandas

TOKEN_BYTES = 8
"""Bytes of a token of a text."""

FEW_LABELS = 20
"""Different labels that are never taken for numbers to predict, or for names of rows."""

SHARE_OF_LABELS = 0.1
"""Share of rows with different numbers from which labels are numbers to predict."""

Spellings = Literal["merged", "kept"]
"""What becomes of labels that differ by blanks, final dots or capitals alone."""


@final
@dataclass(frozen=True, slots=True)
class TableSettings:
    """How a table is read; see `data.datasets.custom.Own`.

    Args:
        header_lines: lines with names of columns.
        spellings: what becomes of labels that are spelled alike; None = they are refused.
        inputs: what is stated of the inputs.
        texts: settings of tokens.

    """

    header_lines: int = 1
    spellings: Spellings | None = None
    inputs: InputSettings = InputSettings()  # noqa: RUF009 - a value that never changes
    texts: TextSettings = TextSettings()  # noqa: RUF009 - a value that never changes


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The meaning of the columns of a table.

    Args:
        label: the column of the labels.
        user: the column of the users; None = unknown.
        text: the column of the texts to learn from; None = all remaining columns are inputs, as
            numbers and categories.
        time: the column of the times, as numbers or ISO dates; None = unknown.
        attributes: columns of sensitive attributes, one value per user; never inputs.
        task: what the labels are.
        more_labels: further columns of labels, unless the task is classification.

    """

    label: str
    user: str | None = None
    text: str | None = None
    time: str | None = None
    attributes: tuple[str, ...] = ()
    task: TaskKind = "classification"
    more_labels: tuple[str, ...] = ()

    def special_columns(self) -> tuple[str, ...]:
        """Return the names of all columns with a meaning of their own."""
        single = (self.user, self.text, self.time)
        given = (column for column in single if column is not None)
        return (*self.label_columns, *given, *self.attributes)

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The columns of labels."""
        return (self.label, *self.more_labels)


def load_table(
    path: Path,
    columns: TableColumns,
    settings: TableSettings,
    seed: Seed,
    listed: Path | None = None,
) -> Dataset:
    """Load the data set in a file with a table; a fifth is held out.

    With users, it is a fifth of each user's rows. Classes, users and values of attributes are
    named as written. Classes are numbered in the order of their names. Missing numbers are
    replaced by the training mean of their column.
    Times become ranks.
    Candidate records are rows of another table with the same columns and a column `owner` or
    `member`, see `data.listed_records`. They are put on the same scale.

    Raises:
        DataError: if a column is missing or cannot be used.

    """
    return dataset_of_table(
        path, read_text_table(path, settings.header_lines), columns, settings, seed, listed
    )


def dataset_of_table(
    path: Path,
    table: TextTable,
    columns: TableColumns,
    settings: TableSettings,
    seed: Seed,
    listed: Path | None = None,
) -> Dataset:
    """Return the data set of a table that was read; see `load_table`."""
    count, members = table.rows, None
    if listed is not None:
        table, members = _with_listed(table, listed, columns, settings, path)
    _check_special_columns(path, table, columns)
    labels = _read_labels(path, table, columns, settings)
    if listed is not None:
        _refuse_unknown_classes(listed, labels, count)
    users = None
    if columns.user is not None:
        users = _read_names(path, table, (columns.user,))[columns.user]
    attributes = _read_names(path, table, columns.attributes)
    times = None
    if columns.time is not None:
        times = rank_times(path, columns.time, _time_cells(table.columns[columns.time]))
    test = hold_out_fifth(
        labels.classes[:count], None if users is None else users.numbers[:count], seed, path
    )
    # Listed records do not count for scales and categories, just as those of the test part.
    is_listed = torch.arange(table.rows) >= count
    test = torch.cat((test, is_listed[count:]))
    is_test = test & ~is_listed
    inputs = _read_inputs(path, table, columns, settings, labels.classes, test)
    notes = [*table.notes, *labels.notes]
    for column in (*(() if users is None else (users,)), *attributes.values()):
        notes += column.notes
    notes += inputs.notes
    return Dataset(
        labels.examples(path, inputs.inputs, ~test, test),
        labels.examples(path, inputs.inputs, is_test, test),
        Task(
            tuple(inputs.inputs.shape[1:]),
            labels.names,
            None if inputs.words is None else inputs.words.tokens,
            columns.task,
        ),
        None if users is None else users.numbers[~test],
        () if users is None else users.names,
        times=None if times is None else times[~test],
        attributes=NO_ATTRIBUTES if users is None else values_of_users(path, attributes, users),
        token_words=inputs.words,
        reading=DataReading(
            inputs.columns,
            "" if inputs.words is not None else SCALE_WORDS[settings.inputs.scale],
            tuple(notes),
        ),
        listed=None
        if listed is None or members is None
        else list_records(
            listed, labels.examples(path, inputs.inputs, is_listed, test), members
        ),
    )


def _check_special_columns(path: Path, table: TextTable, columns: TableColumns) -> None:
    special = columns.special_columns()
    table.require(path, special)
    if len(set(special)) != len(special):
        raise DataError(
            f"{path}: label, user, text, time and attributes must be different columns"
        )
    if columns.attributes and columns.user is None:
        raise DataError(
            f"{path}: {', '.join(columns.attributes)} are attributes of users: name the column "
            "of the users as user"
        )


def _with_listed(
    table: TextTable, path: Path, columns: TableColumns, settings: TableSettings, data: Path
) -> tuple[TextTable, Mapping[Party, tuple[int, ...]]]:
    """Return the table with the rows of another one at its end, and whose records those are.

    Columns that are no inputs of the table alone, such as one that counts its rows, are left
    out.

    Raises:
        DataError: if the other table lacks a column, or nothing says whose its records are.

    """
    other = read_text_table(path, settings.header_lines)
    column = next((one for one in (OWNER, MEMBER) if one in other.columns), None)
    if column is None:
        raise DataError(
            f"{path}: has no column {OWNER!r} (the client of a record, or none) or {MEMBER!r} "
            "(1 or 0): add one of them"
        )
    special = (*columns.special_columns(), *settings.inputs.left_out)
    kept = {name: one for name, one in table.columns.items() if name in special}
    if columns.text is None:
        found = find_inputs(data, table, columns.special_columns(), settings.inputs)
        kept |= {one.name: table.columns[one.name] for one in found.columns}
    other.require(path, tuple(kept))
    members = members_of_cells(path, column, other.columns[column].cells())
    joined = {
        name: append_texts(one, other.columns[name])
        for name, one in table.columns.items()
        if name in kept
    }
    return replace(table, columns=joined, rows=table.rows + other.rows), members


def _refuse_unknown_classes(listed: Path, labels: "_Labels", count: int) -> None:
    """Refuse a label of listed records that none of the first rows, those of the data, has."""
    unknown = {*labels.classes[count:].tolist()} - {*labels.classes[:count].tolist()}
    if unknown:
        raise DataError(
            f"{listed}: holds the label {labels.names[min(unknown)]!r}, which is no class of "
            "the data: remove or correct it"
        )


@dataclass(frozen=True, slots=True)
class _Inputs:
    """The inputs of all rows, the columns that they come from, and notes on them."""

    inputs: Shaped[Tensor, "examples ..."]
    columns: tuple[ReadColumn, ...]
    notes: tuple[str, ...]
    words: TokenWords | None = None


def _read_inputs(
    path: Path,
    table: TextTable,
    columns: TableColumns,
    settings: TableSettings,
    classes: Int64[Tensor, " examples"],
    test: Bool[Tensor, " examples"],
) -> _Inputs:
    """Return the inputs of all rows, fitted to those that are not held out."""
    is_fit = ~test.numpy()
    if columns.text is None:
        found = find_inputs(path, table, columns.special_columns(), settings.inputs)
        inputs, read = encode_inputs(path, found, is_fit, settings.inputs.scale)
        notes = (*found.notes, *note_copies_of_labels(found, classes.numpy()))
        return _Inputs(inputs, read, notes)
    memory = TOKEN_BYTES * settings.texts.tokens * table.rows
    what = f"{path}: the encoding as {settings.texts.tokens} tokens a text"
    refuse_large(what, memory, DataError, part=TABLE)
    cells, is_train = _read_texts(path, table, columns.text), is_fit.tolist()
    train = [cell for cell, is_kept in zip(cells, is_train, strict=True) if is_kept]
    rest = [cell for cell, is_kept in zip(cells, is_train, strict=True) if not is_kept]
    tokens = tokenise_texts(path, train, rest, settings.texts)
    rows = torch.zeros(len(cells), settings.texts.tokens, dtype=torch.long)
    rows[~test], rows[test] = tokens.train, tokens.test
    read = (ReadColumn(columns.text, "text", settings.texts.tokens),)
    unused = [name for name in table.columns if name not in columns.special_columns()]
    notes = (f"Left out: {', '.join(map(repr, unused))}, beside the texts.",) if unused else ()
    return _Inputs(rows, read, notes, tokens.words)


def _read_texts(path: Path, table: TextTable, name: str) -> list[str]:
    column = table.columns[name]
    if all(NUMBER.fullmatch(text.strip()) for text in column.texts if text):
        raise DataError(f"{path}: column {name!r} must hold texts, but has numbers")
    return column.cells()


def _read_names(
    path: Path, table: TextTable, names: tuple[str, ...]
) -> dict[str, CategoricalColumn]:
    """Return columns of users or attributes, with notes on names that are nearly alike."""
    found = dict[str, CategoricalColumn]()
    for name in names:
        column = read_names_of_column(path, name, table.columns[name])
        notes = (*column.notes, *note_names_alike(name, column, "names"))
        found[name] = replace(column, notes=notes)
    return found


def _time_cells(column: TextColumn) -> "pandas.Series":
    """Return times as whole numbers, else as numbers, else as texts; empty ones are missing."""
    import pandas as pd

    texts = [text.strip() for text in column.texts]
    if all(re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII) for text in texts):
        return pd.Series(np.array(list(map(int, texts)))[column.codes])
    if all(NUMBER.fullmatch(text) for text in texts):
        return pd.Series(np.array(list(map(float, texts)))[column.codes])
    cells = np.array([text or None for text in texts], object)
    return pd.Series(cells[column.codes])


@dataclass(frozen=True, slots=True)
class _Labels:
    """The labels of all rows of a table.

    Args:
        classes: the class of each row; 0 everywhere if there are no classes.
        names: the names of the classes, or of the columns.
        rows: the numbers of each row; None = there are classes.
        task: what the labels are.
        notes: a sentence on each thing that may not be as its owner means it.

    """

    classes: Int64[Tensor, " examples"]
    names: tuple[str, ...]
    rows: Float32[Tensor, "examples outputs"] | None
    task: TaskKind
    notes: tuple[str, ...] = ()

    def examples(
        self,
        path: Path,
        inputs: Shaped[Tensor, "examples ..."],
        part: Bool[Tensor, " examples"],
        test: Bool[Tensor, " examples"],
    ) -> Examples:
        """Return the examples of a part; numbers are standardised by those not in the test.

        Raises:
            DataError: if all numbers of the training part are the same.

        """
        if self.rows is None:
            return Examples(inputs[part], self.classes[part])
        try:
            is_real = self.task == "regression"
            rows = standardise_numbers(self.rows, test) if is_real else self.rows
        except ValueError as error:
            raise DataError(f"{path}: {error}: name another column of labels") from error
        return without_classes(inputs[part], rows[part])


def _read_labels(
    path: Path, table: TextTable, columns: TableColumns, settings: TableSettings
) -> _Labels:
    """Return the labels of a table.

    Raises:
        DataError: if the columns do not have labels of the task.

    """
    if columns.task != "classification":
        return _read_number_labels(path, table, columns, settings)
    if columns.more_labels:
        raise DataError(
            f"{path}: more_labels is for the tasks multi_label and regression: leave it out, "
            "or set the task"
        )
    column, notes = table.columns[columns.label], tuple[str, ...]()
    if settings.spellings == "merged":
        column, notes = merge_spellings(column)
    elif settings.spellings is None:
        refuse_spellings(path, columns.label, column)
    _refuse_numbers_to_predict(path, columns.label, column)
    labels = read_names_of_column(path, columns.label, column)
    if not 2 <= len(labels.names) <= MAX_CLASSES:
        raise DataError(
            f"{path}: column {columns.label!r} has {len(labels.names)} different labels, but "
            f"must have 2 to {MAX_CLASSES}: name another column, or set task to 'regression'"
        )
    notes += (*labels.notes, *note_names_alike(columns.label, labels, "classes"))
    are_numbers = all(map(NUMBER.fullmatch, labels.names))
    if are_numbers and (
        len(labels.names) > FEW_LABELS or any(float(name) % 1 for name in labels.names)
    ):
        notes += (
            f"Column {columns.label!r}: its {len(labels.names)} different numbers are read as "
            'classes. To predict them as numbers, set task = "regression".',
        )
    return _Labels(labels.numbers, labels.names, None, columns.task, notes)


def _read_number_labels(
    path: Path, table: TextTable, columns: TableColumns, settings: TableSettings
) -> _Labels:
    """Return the labels of a multi-label task or of a regression.

    Raises:
        DataError: if they are not numbers, or not 0 and 1.

    """
    notes, rows = tuple[str, ...](), list[Float32[Tensor, " examples"]]()
    for name in columns.label_columns:
        column = table.columns[name]
        numbers, told = parse_numbers(path, name, column, settings.inputs.decimals)
        wrong = ~np.isfinite(numbers.astype(np.float32))
        if wrong.any():
            raise DataError(
                f"{path}: column {name!r} must hold finite numbers, without missing cells, but "
                f"has {', '.join(odd_texts(column, wrong, 1))}: correct it"
            )
        rows.append(torch.from_numpy(numbers.astype(np.float32)[column.codes]))
        notes += told
    labels = torch.stack(rows, 1)
    if columns.task == "multi_label" and not bool(((labels == 0) | (labels == 1)).all()):
        raise DataError(
            f"{path}: the columns {', '.join(map(repr, columns.label_columns))} of a "
            "multi_label task must hold 0 and 1 alone: correct them, or set task to "
            "'regression'"
        )
    names = checked_names(path, "labels", columns.label_columns)
    return _Labels(torch.zeros(len(labels)).long(), names, labels, columns.task, notes)


def _refuse_numbers_to_predict(path: Path, name: str, column: TextColumn) -> None:
    """Refuse labels that are numbers to predict, or names of rows, and no classes.

    Raises:
        DataError: if they are.

    """
    rows, different = len(column.codes), len(column.texts)
    numbers = [text.strip().replace(",", ".") for text in column.texts]
    are_numbers = all(map(NUMBER.fullmatch, numbers))
    is_whole = are_numbers and all(float(text) % 1 == 0 for text in numbers)
    if different <= FEW_LABELS or (not are_numbers and 2 * different < rows):
        return
    if not are_numbers:
        raise DataError(
            f"{path}: column {name!r} has {different} different labels in {rows} rows, which "
            "names rows and no classes: name another column"
        )
    if not is_whole or different > SHARE_OF_LABELS * rows:
        raise DataError(
            f"{path}: column {name!r} has {different} different numbers in {rows} rows, which "
            'are no classes: set task = "regression" in the plan\'s source to predict numbers, '
            "or name another column"
        )
