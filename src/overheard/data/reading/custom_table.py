"""A loader of the user's own table."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from overheard.core.errors import DataError
from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import NO_ATTRIBUTES, Dataset
from overheard.data.holdout import hold_out_fifth
from overheard.data.reading.attributes import read_attributes
from overheard.data.reading.custom_arrays import MAX_CLASSES
from overheard.data.reading.tables import (
    categorical_column,
    encode_columns,
    read_table,
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

    """

    label: str
    user: str | None = None
    text: str | None = None
    time: str | None = None
    attributes: tuple[str, ...] = ()

    def special_columns(self) -> tuple[str, ...]:
        """Return the names of all columns with a meaning of their own."""
        single = (self.label, self.user, self.text, self.time)
        return (*(column for column in single if column is not None), *self.attributes)


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
    labels = categorical_column(path, table, columns.label)
    if not 2 <= len(labels.names) <= MAX_CLASSES:
        raise DataError(
            f"{path}: column {columns.label!r} has {len(labels.names)} different labels, but "
            f"must have 2 to {MAX_CLASSES}: name another column"
        )
    users = None if columns.user is None else categorical_column(path, table, columns.user)
    times = None
    if columns.time is not None:
        times = rank_times(path, columns.time, table[columns.time])
    test = hold_out_fifth(labels.numbers, seed, path)
    held_out = test.numpy()
    if columns.text is None:
        features = table.drop(columns=list(special)).apply(_as_numbers)
        fitted_to = features[~held_out]
        train_inputs = encode_columns(path, fitted_to, fitted_to)
        test_inputs = encode_columns(path, features[held_out], fitted_to)
        task, words = Task((train_inputs.shape[1],), labels.names), None
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
        task = Task((texts.tokens,), labels.names, words.tokens)
    return Dataset(
        Examples(train_inputs, labels.numbers[~test]),
        Examples(test_inputs, labels.numbers[test]),
        task,
        None if users is None else users.numbers[~test],
        () if users is None else users.names,
        times=None if times is None else times[~test],
        attributes=NO_ATTRIBUTES
        if users is None
        else read_attributes(path, table, columns.attributes, users),
        token_words=words,
    )


def _as_numbers(column: "pandas.Series") -> "pandas.Series":
    """Return the column as numbers if it has only numbers and spellings of a missing one."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column
    present = column[~column.isin(MISSING_VALUES) & column.notna()]
    if not len(present) or pd.to_numeric(present, errors="coerce").isna().any():
        return column
    return pd.to_numeric(column, errors="coerce")
