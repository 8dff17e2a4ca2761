"""How much a reply may hold: one set of limits for all recorders, checked before it is read.

A check costs the server's thread at most `MAX_VALUES` steps, whatever a reply holds, as it asks
for lengths and sizes and follows nothing. What is beyond a limit is not copied and not read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeGuard, final

import numpy as np

from overheard.recorders.replies.differences import UnstorableError

MAX_VALUES = 20_000
"""Most values of a reply beside its tensors: numbers, texts, and the members of lists."""

MAX_RECORDS = 1000
"""Most groups of tensors and values into which a reply is divided."""

MAX_NAME_CHARACTERS = 1_000_000
"""Most characters of all names in a reply."""

MAX_DEPTH = 4
"""Most levels of nested values that are read; what is deeper is not."""

MAX_EXAMPLES = 2**53
"""Larger numbers of examples are not plausible."""

TENSORS_PER_TENSOR = 4
"""Most tensors of a reply for each one of the model that its client was sent."""

MORE_TENSORS = 100
"""Tensors that a reply may have beyond that, as a small model has few."""

BYTES_PER_BYTE = 8
"""Most bytes of a reply's tensors for each byte of the model; wider numbers take 4."""

MORE_BYTES = 2**20
"""Bytes of tensors that a reply may have beyond that."""

PLAIN_NUMBERS = frozenset(
    {
        *(bool, int, float, np.bool_, np.float16, np.float32, np.float64, np.longdouble),
        *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    }
)
"""The types of numbers. A class derived from one may run any code when it is converted."""


@final
@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """The limits on the tensors of a reply, which follow from the model that was sent.

    Args:
        tensors: the most tensors.
        bytes: the most bytes of all tensors.

    """

    tensors: int = 100_000
    bytes: int = 2**34

    @classmethod
    def of_model(cls, tensors: int, size: int) -> "ReplyLimits":
        """Return the limits of replies to a model of so many tensors and bytes."""
        return cls(
            TENSORS_PER_TENSOR * tensors + MORE_TENSORS, BYTES_PER_BYTE * size + MORE_BYTES
        )

    def check_count(self, count: int) -> None:
        """Refuse too many tensors, before any of them is looked at."""
        _check("tensors", count, self.tensors, "the model that was sent allows")

    def check_bytes(self, size: int) -> None:
        """Refuse too many bytes, before they are copied."""
        _check("bytes of tensors", size, self.bytes, "the model that was sent allows")


NO_MODEL = ReplyLimits()
"""The limits of replies to a model that is not known."""


def check_values(count: int) -> None:
    """Refuse too many values, before any of them is looked at."""
    _check("values beside its tensors", count, MAX_VALUES)


def check_records(count: int) -> None:
    """Refuse too many groups of tensors and values, before any of them is looked at."""
    _check("records", count, MAX_RECORDS)


def check_names(names: Iterable[object]) -> None:
    """Refuse names of too many characters, before they are copied.

    Args:
        names: the names, whose number was checked.

    """
    total = sum(len(name) for name in names if type(name) is str)
    _check("characters of names", total, MAX_NAME_CHARACTERS)


def is_round_number(value: object) -> TypeGuard[int]:
    """Return whether a value that a reply tells can be the number of a round."""
    return type(value) is int and 0 <= value < 2**53


def copy_values(values: Mapping[str, object]) -> dict[str, object]:
    """Return a copy of the values of a reply, whose lists no longer change.

    Lists and arrays are copied without a look at their members. What is nested more deeply than
    `MAX_DEPTH`, and what is no plain container, stays as it is: nobody reads it.

    Raises:
        UnstorableError: if there are more values or characters of names than the limits.

    """
    budget = _Budget()
    return _copy_mapping(values, budget, MAX_DEPTH)


class _Budget:
    """How many values were met so far."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = 0

    def spend(self, count: int) -> None:
        self.used += count
        check_values(self.used)


def _copy_mapping(
    values: Mapping[str, object], budget: _Budget, depth: int
) -> dict[str, object]:
    budget.spend(len(values))
    check_names(values)
    copied = dict(values)
    for name, value in copied.items():
        kind = type(value)
        if kind is dict and depth > 1:
            copied[name] = _copy_mapping(value, budget, depth - 1)  # type: ignore[arg-type]
        elif kind in (list, tuple):
            budget.spend(len(value))  # type: ignore[arg-type]
            copied[name] = tuple(value)  # type: ignore[arg-type]
        elif kind is np.ndarray and value.ndim == 1:  # type: ignore[attr-defined]
            budget.spend(len(value))  # type: ignore[arg-type]
            copied[name] = np.array(value)
    return copied


def _check(what: str, count: int, most: int, why: str = "a recorder reads") -> None:
    if count > most:
        raise UnstorableError(f"it has {count:,} {what}, and {why} {most:,}", "other")
