"""Sensitive attributes of users, from the columns of a table."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from overheard.core.errors import DataError
from overheard.data.reading.tables import CategoricalColumn


def values_of_users(
    path: Path, columns: Mapping[str, CategoricalColumn], users: CategoricalColumn
) -> Mapping[str, tuple[str, ...]]:
    """Return each user's value in each of these columns, in the order of the users.

    Raises:
        DataError: if a user has several values.

    """
    return MappingProxyType(
        {name: _values_of_users(path, name, cells, users) for name, cells in columns.items()}
    )


def _values_of_users(
    path: Path, column: str, cells: CategoricalColumn, users: CategoricalColumn
) -> tuple[str, ...]:
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
