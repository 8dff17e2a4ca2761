"""Results as plain values: numbers with six digits, and tables with unique names."""

from collections.abc import Iterable, Mapping
from math import isfinite

DIGITS = 6

LEAST = 1e-9
"""Smaller numbers are differences of equal ones, and count as 0."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

Table = dict[str, Json]


def rounded(value: object) -> Json:
    """Return a value as JSON, with six digits of each number.

    >>> rounded({"a": (1 / 3, 1e-17, float("nan"))})
    {'a': [0.333333, 0.0, 'nan']}
    """
    if isinstance(value, float):
        if not isfinite(value):
            return str(value)
        return 0.0 if abs(value) < LEAST else float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {str(key): rounded(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [rounded(one) for one in value]
    assert value is None or isinstance(value, str | int), value
    return value


def table(rows: Iterable[tuple[str, Json]]) -> Table:
    """Return rows by name; a name that occurs again gets a number.

    >>> table([("a", 1), ("a", 2)])
    {'a': 1, 'a (2)': 2}
    """
    found = Table()
    for name, row in rows:
        unique, number = name, 1
        while unique in found:
            number += 1
            unique = f"{name} ({number})"
        found[unique] = row
    return found
