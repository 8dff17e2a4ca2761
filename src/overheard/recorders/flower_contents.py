"""Metadata of Flower messages, which travels in clear text beside the arrays."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite

from flwr.app import RecordDict

SIZE_KEYS = ("num-examples", "num_examples")
"""Names under which Flower's current and earlier strategies look for the number of examples."""

MAX_LENGTH = 200
"""Most characters of an untrusted name or text that are recorded."""


@dataclass(frozen=True, slots=True)
class AnswerMetadata:
    """Metadata of a reply.

    Args:
        examples: reported number of examples; None if there is no valid one.
        metrics: all other finite numbers, by name; `name[0]`, ... for lists.
        unrecorded: names of values that a transcript cannot store: texts, NaN and infinities.

    """

    examples: int | None
    metrics: Mapping[str, float]
    unrecorded: tuple[str, ...]


def read_answer_metadata(
    content: RecordDict, sizes: tuple[str, ...] = SIZE_KEYS
) -> AnswerMetadata:
    """Read the numbers in a reply's metrics and configuration.

    Args:
        content: content of the reply.
        sizes: names of the number of examples; the first valid one is used.

    """
    values = list(_values(content))
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


def read_config(content: RecordDict) -> dict[str, str]:
    """Read all metadata of a broadcast as text; bytes are replaced by their number."""
    return {
        name: f"<{len(value)} bytes>" if isinstance(value, bytes) else sanitize_text(str(value))
        for name, value in _values(content)
    }


def sanitize_text(text: str, max_length: int = MAX_LENGTH) -> str:
    """Cut an untrusted text, and replace unprintable characters by "?"."""
    cut = text if len(text) <= max_length else f"{text[:max_length]}..."
    return "".join(one if one.isprintable() else "?" for one in cut)


def _values(content: RecordDict) -> Iterator[tuple[str, object]]:
    """Yield every value with its name, or with `record/name` if two records have the name."""
    records: dict[str, Mapping[str, object]] = {
        **content.metric_records,
        **content.config_records,
    }
    counts = Counter(name for record in records.values() for name in record)
    for key, record in records.items():
        for name, value in record.items():
            label = sanitize_text(name if counts[name] == 1 else f"{key}/{name}")
            if isinstance(value, list):
                yield from ((f"{label}[{place}]", one) for place, one in enumerate(value))
            else:
                yield label, value


def _number(value: object) -> float | None:
    """Return the value if it is a finite number, else None."""
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None
