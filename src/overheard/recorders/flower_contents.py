"""What travels beside the arrays of a Flower message, in clear."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite

from flwr.app import RecordDict

SIZES = ("num-examples", "num_examples")
"""Under which names Flower's strategies, today's and those before, look for a size."""

LONGEST = 200
"""Characters of a name or a text from outside that are kept."""


@dataclass(frozen=True, slots=True)
class Told:
    """What an answer tells beside its arrays.

    Args:
        examples: how many it says it used; None where it says none that can be.
        metrics: all other finite numbers, by name; `name[0]`, ... where they are a list.
        unrecorded: names of what a transcript has no place for: texts, NaN and infinities.

    """

    examples: int | None
    metrics: Mapping[str, float]
    unrecorded: tuple[str, ...]


def told_in(content: RecordDict, sizes: tuple[str, ...] = SIZES) -> Told:
    """The numbers in an answer's metrics and configuration.

    Args:
        content: of the answer.
        sizes: under which names it tells how many examples it used; the first that it has.

    """
    found = list(_values(content))
    examples, size = None, ""
    for name in sizes:
        number = next((value for held, value in found if held == name), None)
        whole = _number(number)
        if whole is not None and whole >= 0 and whole == int(whole):
            examples, size = int(whole), name
            break
    metrics, unrecorded = dict[str, float](), list[str]()
    for name, value in found:
        if name == size:
            continue
        number = _number(value)
        if number is None:
            unrecorded.append(name)
        else:
            metrics[name] = number
    return Told(examples, metrics, tuple(unrecorded))


def config_in(content: RecordDict) -> dict[str, str]:
    """All that travels in clear with a model, as text; of bytes only how many."""
    return {
        name: f"<{len(value)} bytes>" if isinstance(value, bytes) else plain(str(value))
        for name, value in _values(content)
    }


def plain(text: str, longest: int = LONGEST) -> str:
    """A text from outside without what could move a cursor or break a line, cut short."""
    cut = text if len(text) <= longest else f"{text[:longest]}..."
    return "".join(one if one.isprintable() else "?" for one in cut)


def _values(content: RecordDict) -> Iterator[tuple[str, object]]:
    """Every value with its name, which is `record/name` where two records have it."""
    records: dict[str, Mapping[str, object]] = {
        **content.metric_records,
        **content.config_records,
    }
    often = Counter(name for record in records.values() for name in record)
    for key, record in records.items():
        for name, value in record.items():
            label = plain(name if often[name] == 1 else f"{key}/{name}")
            if isinstance(value, list):
                yield from ((f"{label}[{place}]", one) for place, one in enumerate(value))
            else:
                yield label, value


def _number(value: object) -> float | None:
    """The value, if it is a finite number."""
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None
