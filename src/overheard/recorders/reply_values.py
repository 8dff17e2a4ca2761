"""Metadata that travels in clear text beside the weights, made safe for a transcript."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite

SIZE_KEYS = ("num-examples", "num_examples")
"""Names under which Flower's current and earlier strategies look for the number of examples."""

MAX_LENGTH = 200
"""Most characters of an untrusted name or text that are recorded."""

NamedValue = tuple[str, object]
"""A value that a party sent, with its name."""


@dataclass(frozen=True, slots=True)
class AnswerMetadata:
    """Metadata of a reply.

    Args:
        examples: reported number of examples; None if there is no valid one.
        metrics: all other finite numbers, by name.
        unrecorded: names of values that a transcript cannot store: texts, NaN and infinities.

    """

    examples: int | None
    metrics: Mapping[str, float]
    unrecorded: tuple[str, ...]


def separate_values(
    values: Iterable[NamedValue], sizes: tuple[str, ...] = SIZE_KEYS
) -> AnswerMetadata:
    """Separate the values of a reply into its number of examples and its metrics.

    Args:
        values: the values, with sanitized names.
        sizes: names of the number of examples; the first valid one is used.

    """
    values = list(values)
    examples, size = None, ""
    for name in sizes:
        number = next((value for key, value in values if key == name), None)
        candidate = _number(number)
        if candidate is not None and candidate >= 0 and candidate == int(candidate):
            examples, size = int(candidate), name
            break
    metrics, unrecorded = dict[str, float](), list[str]()
    for name, value in values:
        if name == size:
            continue
        number = _number(value)
        if number is None:
            unrecorded.append(name)
        else:
            metrics[name] = number
    return AnswerMetadata(examples, metrics, tuple(unrecorded))


def describe_values(values: Iterable[NamedValue]) -> dict[str, str]:
    """Return the values of a broadcast as text; bytes are replaced by their number."""
    return {
        name: f"<{len(value)} bytes>" if isinstance(value, bytes) else sanitize_text(str(value))
        for name, value in values
    }


def sanitize_text(text: str, max_length: int = MAX_LENGTH) -> str:
    """Cut an untrusted text, and replace unprintable characters by "?"."""
    cut = text if len(text) <= max_length else f"{text[:max_length]}..."
    return "".join(one if one.isprintable() else "?" for one in cut)


def _number(value: object) -> float | None:
    """Return the value if it is a finite number, else None."""
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None
