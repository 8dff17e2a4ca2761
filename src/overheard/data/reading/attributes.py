"""A reader of users' sensitive attributes from the columns of a table."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from overheard.core.errors import DataError
from overheard.data.reading.tables import CategoricalColumn, categorical_column

if TYPE_CHECKING:  # pandas is large, and most audits read no table
    import pandas


def read_attributes(
    path: Path, table: "pandas.DataFrame", columns: tuple[str, ...], users: CategoricalColumn
) -> Mapping[str, tuple[str, ...]]:
    """Return each user's value in each of these columns, in the order of the users.

    Raises:
        DataError: if a column or one of its cells is missing, or a user has several values.

    """
    return MappingProxyType(
        {column: _values_of_users(path, table, column, users) for column in columns}
    )


def _values_of_users(
    path: Path, table: "pandas.DataFrame", column: str, users: CategoricalColumn
) -> tuple[str, ...]:
    cells = categorical_column(path, table, column)
    of_user = np.zeros(len(users.names), np.int64)
    # The last cell of each user; all others must be equal to it.
    of_user[users.numbers.numpy()] = cells.numbers.numpy()
    differing = of_user[users.numbers.numpy()] != cells.numbers.numpy()
    if differing.any():
        user = users.names[int(users.numbers[int(differing.argmax())])]
        raise DataError(
            f"{path}: user {user!r} has several values in column {column!r}, but an attribute "
            "has one value per user: correct them, or remove the column from attributes"
        )
    return tuple(cells.names[number] for number in of_user)
