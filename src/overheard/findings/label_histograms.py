"""Histograms of labels that replies state in clear text: they are a client's label shares."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from overheard.core.messages import Evaluation, Message, UnstoredMessage, Update
from overheard.core.parties import Party, is_shadow_device

_LIST = re.compile(r"(.+)\[\d+\]")
_FIELD = re.compile(r"(.+)\.[^.]+")
_PREFIXED = re.compile(
    r"((?:n|num|number|counts?|labels?|class|classes|hist|histogram|shares?|targets?)"
    r"(?:[_ -](?:of|labels?|class|classes|counts?|examples|samples))*)[_ /:-].+",
    re.IGNORECASE,
)
_LABELS = re.compile(r"label|class|hist|distribution|prior|target", re.IGNORECASE)
_HISTOGRAM = re.compile(
    r"hist|(label|class|target)(e?s)?[_ -]?(count|dist|share|num)|"
    r"(count|num|n|share)s?[_ -](of[_ -]|per[_ -]|by[_ -])?(label|class|target)",
    re.IGNORECASE,
)

SHARE_TOLERANCE = 1e-3
"""How far the sum of rounded label shares may be from 1."""


@dataclass(frozen=True, slots=True)
class LabelHistogram:
    """Numbers in clear text that state how many examples of each class a client has.

    Args:
        name: the name under which they are sent.
        classes: how many classes they list, at most.
        senders: who sends them.
        messages: the messages that have them.

    """

    name: str
    classes: int
    senders: frozenset[Party]
    messages: tuple[Message, ...]


def find_label_histograms(messages: Sequence[Message]) -> tuple[LabelHistogram, ...]:
    """Return the histograms of labels that somebody reads in clear text.

    Numbers of one name ("counts[0]", "counts.cat", "count_0") are a histogram if they are
    whole, are at least two, and sum to the number of examples of their reply; or if they are
    shares that sum to 1, or whole numbers beside a hidden number of examples, and the name says
    so. In at least half of the replies that have them, as single replies may be false.
    """
    found = defaultdict[str, list[tuple[Message, int]]](list)
    occurrences = defaultdict[str, int](int)
    for message in messages:
        body = message.body
        if (
            isinstance(body, Update | Evaluation | UnstoredMessage)
            and message.readers
            and not is_shadow_device(message.sender)
        ):
            for name, values in _groups(body.metrics):
                occurrences[name] += 1
                if _is_histogram(name, values, body.examples):
                    found[name].append((message, len(values)))
    return tuple(
        LabelHistogram(
            name,
            max(classes for _, classes in each),
            frozenset(message.sender for message, _ in each),
            tuple(message for message, _ in each),
        )
        for name, each in found.items()
        if 2 * len(each) >= occurrences[name]
    )


def _groups(metrics: Mapping[str, float]) -> Iterator[tuple[str, list[float]]]:
    """Yield the numbers that share a name, if there are at least two."""
    groups = defaultdict[str, list[float]](list)
    for name, value in metrics.items():
        for shared in _shared_names(name):
            groups[shared].append(value)
    yield from ((name, values) for name, values in groups.items() if len(values) > 1)


def _shared_names(name: str) -> Iterator[str]:
    """Yield the name of the list or of the family that a metric belongs to."""
    if match := _LIST.fullmatch(name) or _FIELD.fullmatch(name):
        yield match[1]
        return
    parts = re.split(r"\d+", name)
    if len(parts) == 2:
        yield "#".join(parts)
    elif match := _PREFIXED.fullmatch(name):
        yield f"{match[1]}..."


def _is_histogram(name: str, values: Sequence[float], examples: int | None) -> bool:
    if min(values) < 0:
        return False
    total, is_whole = sum(values), all(float(one).is_integer() for one in values)
    if is_whole and examples:
        return total == examples
    if is_whole:
        return total > 0 and bool(_HISTOGRAM.search(name)) and not _is_range(values)
    return abs(total - 1) < SHARE_TOLERANCE and bool(_LABELS.search(name))


def _is_range(values: Sequence[float]) -> bool:
    """Return whether these are 0, 1, 2, ...: numbers of classes and not of examples."""
    return all(after == before + 1 for before, after in pairwise(values))
