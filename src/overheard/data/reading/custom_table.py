"""A loader of the user's own table."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float32, Int64, Shaped
from torch import Tensor

from overheard.core.errors import DataError
from overheard.core.examples import Examples, without_classes
from overheard.core.seeds import Seed
from overheard.core.task import Task, TaskKind
from overheard.data.dataset import NO_ATTRIBUTES, Dataset
from overheard.data.holdout import hold_out_fifth
from overheard.data.reading.arrays import checked_names
from overheard.data.reading.attributes import read_attributes
from overheard.data.reading.custom_arrays import MAX_CLASSES
from overheard.data.reading.float_labels import standardise_numbers
from overheard.data.reading.tables import (
    categorical_column,
    encode_columns,
    read_table,
    real_column,
    require_columns,
    text_column,
)
from overheard.data.reading.texts import TextSettings, tokenise_texts
from overheard.data.reading.times import rank_times

if TYPE_CHECKING:  # pandas is large, and most audits read no table
    import pandas

MISSING_VALUES = ("", "?", "NA", "N/A", "NaN", "nan", "None", "null", "NULL")
"""Common spellings of a missing number."""


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


def load_table(path: Path, columns: TableColumns, texts: TextSettings, seed: Seed) -> Dataset:
    """Load the data set in a `.parquet`, `.csv` or `.csv.gz` table; a fifth is held out.

    Labels are numbered in the order of their names. Missing numbers are replaced by the
    training mean of their column. Times become ranks.

    Raises:
        DataError: if a column is missing or cannot be used.

    """
    table = read_table(path)
    special = columns.special_columns()
    require_columns(path, table, special)
    if len(set(special)) != len(special):
        raise DataError(
            f"{path}: label, user, text, time and attributes must be different columns"
        )
    if columns.attributes and columns.user is None:
        raise DataError(
            f"{path}: {', '.join(columns.attributes)} are attributes of users: name the column "
            "of the users as user"
        )
    labels = _read_labels(path, table, columns)
    users = None if columns.user is None else categorical_column(path, table, columns.user)
    times = None
    if columns.time is not None:
        times = rank_times(path, columns.time, table[columns.time])
    test = hold_out_fifth(labels.classes, seed, path)
    held_out = test.numpy()
    if columns.text is None:
        features = table.drop(columns=list(special)).apply(_as_numbers)
        fitted_to = features[~held_out]
        train_inputs = encode_columns(path, fitted_to, fitted_to)
        test_inputs = encode_columns(path, features[held_out], fitted_to)
        task, words = Task((train_inputs.shape[1],), labels.names, kind=columns.task), None
    else:
        cells = text_column(path, table, columns.text)
        tokens = tokenise_texts(
            [
                cell
                for cell, is_test in zip(cells, held_out.tolist(), strict=True)
                if not is_test
            ],
            [cell for cell, is_test in zip(cells, held_out.tolist(), strict=True) if is_test],
            texts,
        )
        train_inputs, test_inputs = tokens.train, tokens.test
        words = tokens.words
        task = Task((texts.tokens,), labels.names, words.tokens, columns.task)
    return Dataset(
        labels.examples(path, train_inputs, test, is_test=False),
        labels.examples(path, test_inputs, test, is_test=True),
        task,
        None if users is None else users.numbers[~test],
        () if users is None else users.names,
        times=None if times is None else times[~test],
        attributes=NO_ATTRIBUTES
        if users is None
        else read_attributes(path, table, columns.attributes, users),
        token_words=words,
    )


@dataclass(frozen=True, slots=True)
class _Labels:
    """The labels of all rows of a table.

    Args:
        classes: the class of each row; 0 everywhere if there are no classes.
        names: the names of the classes, or of the columns.
        rows: the numbers of each row; None = there are classes.
        task: what the labels are.

    """

    classes: Int64[Tensor, " examples"]
    names: tuple[str, ...]
    rows: Float32[Tensor, "examples outputs"] | None
    task: TaskKind

    def examples(
        self,
        path: Path,
        inputs: Shaped[Tensor, "part ..."],
        test: Bool[Tensor, " examples"],
        *,
        is_test: bool,
    ) -> Examples:
        """Return the examples of the training or of the test part, of which inputs are given.

        Raises:
            DataError: if all numbers of the training part are the same.

        """
        part = test if is_test else ~test
        if self.rows is None:
            return Examples(inputs, self.classes[part])
        try:
            is_real = self.task == "regression"
            rows = standardise_numbers(self.rows, test) if is_real else self.rows
        except ValueError as error:
            raise DataError(f"{path}: {error}: name another column of labels") from error
        return without_classes(inputs, rows[part])


def _read_labels(path: Path, table: "pandas.DataFrame", columns: TableColumns) -> _Labels:
    """Return the labels of a table.

    Raises:
        DataError: if the columns do not have labels of the task.

    """
    if columns.task != "classification":
        rows = torch.stack(
            [real_column(path, table, column) for column in columns.label_columns], 1
        )
        if columns.task == "multi_label" and not bool(((rows == 0) | (rows == 1)).all()):
            raise DataError(
                f"{path}: the columns {', '.join(map(repr, columns.label_columns))} of a "
                "multi_label task must hold 0 and 1 alone: correct them, or set task to "
                "'regression'"
            )
        names = checked_names(path, "labels", columns.label_columns)
        return _Labels(torch.zeros(len(rows)).long(), names, rows, columns.task)
    if columns.more_labels:
        raise DataError(
            f"{path}: more_labels is for the tasks multi_label and regression: leave it out, "
            "or set the task"
        )
    labels = categorical_column(path, table, columns.label)
    if not 2 <= len(labels.names) <= MAX_CLASSES:
        raise DataError(
            f"{path}: column {columns.label!r} has {len(labels.names)} different labels, but "
            f"must have 2 to {MAX_CLASSES}: name another column, or set task to 'regression'"
        )
    return _Labels(labels.numbers, labels.names, None, columns.task)


def _as_numbers(column: "pandas.Series") -> "pandas.Series":
    """Return the column as numbers if it has only numbers and spellings of a missing one."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column
    present = column[~column.isin(MISSING_VALUES) & column.notna()]
    if not len(present) or pd.to_numeric(present, errors="coerce").isna().any():
        return column
    return pd.to_numeric(column, errors="coerce")
