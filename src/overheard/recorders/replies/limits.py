"""How much a reply may hold: one set of limits for all recorders, checked before it is read.

A check costs the server's thread at most `MAX_VALUES` steps, whatever a reply holds, as it asks
for lengths and sizes and follows nothing. What is beyond a limit is not copied and not read.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard, final

import numpy as np

from overheard.recorders.replies.differences import UnstorableError

MAX_VALUES = 12_000
"""Most values of a reply beside its tensors: numbers, texts, and the members of lists.

A sweep of 10,000 settings fits, with some values beside it."""

CONTAINER_VALUES = 4
"""As how many more values a list, an array or a nested group of values counts.

Even an empty one takes about as long to copy as so many numbers."""

MAX_RECORDS = 1000
"""Most groups of tensors and values into which a reply is divided."""

MAX_NAME_CHARACTERS = 1_000_000
"""Most characters of all names in a reply."""

MAX_TEXT_CHARACTERS = 1_000_000
"""Most characters of all texts in a reply that are searched for numbers; others are named."""

VALUE_BYTES = 100
"""Bytes in memory of a number with its name, roughly."""

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

TEXTS = frozenset({str, bytes})
"""The types of texts, in which numbers may be listed."""


@final
@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """The limits on the tensors of a reply, which follow from the model that was sent.

    Args:
        tensors: the most tensors.
        bytes: the most bytes of all tensors.

    """

    tensors: int = 100_000
    bytes: int = 2**30

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


def check_names(names: Mapping[str, object]) -> None:
    """Refuse names of too many characters, before they are copied.

    Args:
        names: the names, whose number was checked; what is no text is no name.

    """
    are_texts = set(map(type, names)) <= {str}
    texts = names if are_texts else [name for name in names if type(name) is str]
    total = sum(map(len, texts))
    _check("characters of names", total, MAX_NAME_CHARACTERS)


def is_round_number(value: object) -> TypeGuard[int]:
    """Return whether a value that a reply tells can be the number of a round."""
    return type(value) is int and 0 <= value < 2**53


@final
@dataclass(frozen=True, slots=True)
class CopiedValues:
    """A copy of the values of a reply.

    Args:
        values: the values, by name.
        size: their bytes in memory, roughly.

    """

    values: dict[str, object]
    size: int


def copy_values(values: Mapping[str, object]) -> CopiedValues:
    """Return a copy of the values of a reply, whose lists no longer change.

    Texts beyond `MAX_TEXT_CHARACTERS` are emptied, as only their names are recorded. Whatever
    is no plain container, number or text becomes None, and so does what is nested more deeply
    than `MAX_DEPTH`: nobody reads it.

    Raises:
        UnstorableError: if there are more values or characters of names than the limits.

    """
    budget = _Budget()
    copied = _copy_mapping(values, budget, MAX_DEPTH)
    return CopiedValues(copied, budget.values * VALUE_BYTES + budget.characters)


class _Budget:
    """How many values and characters of texts were met so far."""

    __slots__ = ("characters", "values")

    def __init__(self) -> None:
        self.values = 0
        self.characters = 0

    def spend(self, count: int) -> None:
        """Count a container with so many members, before any of them is looked at."""
        self.values += count + CONTAINER_VALUES
        check_values(self.values)

    def keep_all(self, values: Sequence[object]) -> tuple[object, ...]:
        """Return the members of a list, as `keep` does."""
        self.spend(len(values))
        return tuple(values) if self.keeps_all(values) else tuple(map(self.keep, values))

    def keeps_all(self, values: Collection[object]) -> bool:
        """Return whether all values stay as they are, which is much faster than one by one."""
        kinds = set(map(type, values))
        if not kinds <= PLAIN_NUMBERS | TEXTS:
            return False
        characters = 0
        if not kinds <= PLAIN_NUMBERS:
            texts = [one for one in values if isinstance(one, str | bytes)]
            characters = sum(map(len, texts))
        if self.characters + characters > MAX_TEXT_CHARACTERS:
            return False
        self.characters += characters
        return True

    def keep(self, value: object) -> object:
        """Return a value that is no container, if it can be read."""
        kind = type(value)
        if kind in PLAIN_NUMBERS:
            return value
        if kind not in TEXTS:
            return None
        text: str | bytes = value  # type: ignore[assignment]
        if self.characters + len(text) > MAX_TEXT_CHARACTERS:
            return text[:0]
        self.characters += len(text)
        return text


def _copy_mapping(
    values: Mapping[str, object], budget: _Budget, depth: int
) -> dict[str, object]:
    budget.spend(len(values))
    check_names(values)
    copied = dict(values)
    if budget.keeps_all(copied.values()):
        return copied
    for name, value in copied.items():
        kind = type(value)
        if kind in PLAIN_NUMBERS or kind in TEXTS:
            copied[name] = budget.keep(value)
        elif type(value) is dict and depth > 1:
            copied[name] = _copy_mapping(value, budget, depth - 1)
        elif type(value) is list or type(value) is tuple:
            copied[name] = budget.keep_all(value)
        elif type(value) is np.ndarray and value.ndim == 1:
            check_values(len(value))
            copied[name] = budget.keep_all(value.tolist())
        else:
            copied[name] = budget.keep(value)
    return copied


def _check(what: str, count: int, most: int, why: str = "a recorder reads") -> None:
    if count > most:
        raise UnstorableError(f"it has {count:,} {what}, and {why} {most:,}", "other")
