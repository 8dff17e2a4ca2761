"""Metadata that travels in clear text beside the weights, made safe for a transcript."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from overheard.recorders.replies.limits import MAX_VALUES, PLAIN_NUMBERS

SIZE_KEYS = ("num-examples", "num_examples")
"""Names under which Flower's current and earlier strategies look for the number of examples."""

MAX_LENGTH = 200
"""Most characters of an untrusted name or text that are recorded."""

MAX_TEXTS = 100
"""Most texts of one reply that are named."""

MAX_NUMBERS_LENGTH = 10_000
"""Longest text in which numbers are looked for, in characters."""

_PLACE = re.compile(r"\[\d+\]$")

_WHOLE_KEY = re.compile(r"([{,]\s*)(\d+)\s*:")

_NUMBERS = re.compile(r"[\[({][^\[({]+[\])}]")

NamedValue = tuple[str, object]
"""A value that a party sent, with its name."""


@dataclass(frozen=True, slots=True)
class AnswerMetadata:
    """Metadata of a reply.

    Args:
        examples: reported number of examples; None if there is no valid one.
        metrics: all other finite numbers, by name.
        texts: names of texts and bytes, whose content a transcript does not store.
        unrecorded: names of numbers that a transcript cannot store: NaN and infinities.
        size: the name under which the number of examples was reported; "" = none was.

    """

    examples: int | None
    metrics: Mapping[str, float]
    texts: tuple[str, ...] = ()
    unrecorded: tuple[str, ...] = ()
    size: str = ""


def separate_values(
    values: Iterable[NamedValue], sizes: tuple[str, ...] = SIZE_KEYS
) -> AnswerMetadata:
    """Separate the values of a reply into its number of examples, its metrics and its texts.

    A text that is a list or a dictionary of numbers, such as "[12, 0, 31]", is taken for these
    numbers: `name[0]`, ... or `name.key`. From the first text on with which there were more
    than `MAX_VALUES` values, no text is.

    Args:
        values: the values, with sanitized names.
        sizes: names of the number of examples; the first valid one is used.

    """
    values = _read_texts(list(values))
    examples, size = None, ""
    for name in sizes:
        number = next((value for key, value in values if key == name), None)
        candidate = _number(number)
        if candidate is not None and candidate >= 0 and candidate == int(candidate):
            examples, size = int(candidate), name
            break
    metrics, texts, unrecorded = dict[str, float](), dict[str, None](), list[str]()
    for name, value in values:
        if name == size:
            continue
        number = _number(value)
        if number is not None:
            metrics[name] = number
        elif type(value) in (str, bytes):
            # A list of texts has one name.
            texts[_PLACE.sub("", name)] = None
        else:
            unrecorded.append(name)
    return AnswerMetadata(examples, metrics, tuple(texts)[:MAX_TEXTS], tuple(unrecorded), size)


def _read_texts(values: Sequence[NamedValue]) -> list[NamedValue]:
    """Return values in which texts are replaced by the numbers that they list."""
    read, more, is_full = list[NamedValue](), MAX_VALUES - len(values), False
    for value in values:
        numbers = [value] if is_full else list(read_numbers_of_text(*value))
        more -= len(numbers) - 1
        is_full = is_full or more < 0
        read += [value] if is_full else numbers
    return read


def read_numbers_of_text(name: str, value: object) -> Iterator[NamedValue]:
    """Yield the numbers that a text lists, or else the value itself."""
    numbers = _parse_numbers(value)
    if numbers is None:
        yield name, value
    elif isinstance(numbers, dict):
        yield from (
            (f"{name}.{sanitize_text(str(key))}", number) for key, number in numbers.items()
        )
    else:
        yield from ((f"{name}[{place}]", number) for place, number in enumerate(numbers))


def _parse_numbers(value: object) -> list[object] | dict[object, object] | None:
    """Return the two or more numbers that a text lists; None if it does anything else."""
    # A class derived from these may run any code.
    if type(value) is bytes:
        value = value[: MAX_NUMBERS_LENGTH + 1].decode(errors="replace")
    if type(value) is not str or len(value) > MAX_NUMBERS_LENGTH:
        return None
    text = value.strip()
    # Not nested, so that reading it is cheap whatever it contains.
    if not _NUMBERS.fullmatch(text):
        return None
    if text[0] == "(":
        text = f"[{text[1:-1]}]"
    # As JSON or as Python writes it.
    text = _WHOLE_KEY.sub(r'\1"\2":', text.replace("'", '"'))
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, list | dict) or len(read) < 2:
        return None
    numbers = list(read.values()) if isinstance(read, dict) else read
    if any(_number(one) is None for one in numbers):
        return None
    return read if isinstance(read, dict) else numbers


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
    if type(value) not in PLAIN_NUMBERS:
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        return None
    return number if isfinite(number) else None
