"""Sentences on the metadata of a run: everything but weights that its messages contain."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from statistics import correlation, fmean

from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Evaluation,
    Message,
    MissingReply,
    UnstoredMessage,
    Update,
)
from overheard.core.parties import SERVER, Party, is_shadow_device
from overheard.findings.names import shorten

MAX_NAMES = 8
"""Names or values that are listed; further ones are counted."""

MAX_LENGTH = 60
"""Longest name or value shown, in characters: it may come from anybody."""

MIN_CLIENTS = 5
"""Fewest clients for which a correlation is reported."""


@dataclass(frozen=True, slots=True)
class MetadataItem:
    """What messages contain besides weights, of one kind, such as numbers of examples.

    Args:
        kind: the kind, such as "examples" or "names".
        text: the range of its values and who reads it, in words.

    """

    kind: str
    text: str


def describe_metadata(messages: Sequence[Message]) -> tuple[MetadataItem, ...]:
    """Describe all metadata in the messages of a run, one item per kind."""
    kinds: dict[str, Callable[[Sequence[Message]], Iterator[str]]] = {
        "labels": _label_histograms,
        "examples": _example_counts,
        "metrics": _metrics,
        "evaluations": _evaluations,
        "config": _config,
        "times": _times,
        "names": _names,
        "texts": _texts,
        "unstored": _unstored,
        "absent": _absent_tensors,
        "missing": _missing_updates,
    }
    items = [
        MetadataItem(kind, "; ".join(describe(messages))) for kind, describe in kinds.items()
    ]
    return tuple(item for item in items if item.text)


def list_names(names: Collection[str], most: int = MAX_NAMES) -> str:
    """List the first of these names, and count the others."""
    first = ", ".join(shorten(name, MAX_LENGTH) for name in list(names)[:most])
    return first if len(names) <= most else f"{first} and {len(names) - most:,} more"


def _label_histograms(messages: Sequence[Message]) -> Iterator[str]:
    for one in find_label_histograms(messages):
        readers = _readers([(message, None) for message in one.messages])
        verb = "states" if len(one.senders) == 1 else "state"
        yield (
            f"{shorten(one.name, MAX_LENGTH)} is a histogram of labels in clear text: "
            f"{_count_words(one.senders, 'sender')} {verb} the label shares of up to "
            f"{one.classes:,} classes, read by {readers} without an attack"
        )


def _example_counts(messages: Sequence[Message]) -> Iterator[str]:
    sized = [
        (message, message.body.examples)
        for message in messages
        if isinstance(message.body, Update | UnstoredMessage)
        and message.body.examples is not None
        and not is_shadow_device(message.sender)
        and message.readers
    ]
    if sized:
        yield from _count_sentences(sized)
    sums = [
        (message, message.body.examples)
        for message in messages
        if isinstance(message.body, Aggregate)
        and message.body.examples is not None
        and message.readers
    ]
    if sums:
        yield f"sums of {_range([one for _, one in sums])} examples, read by {_readers(sums)}"


def _count_sentences(sized: Sequence[tuple[Message, int]]) -> Iterator[str]:
    by_sender = defaultdict[Party, list[int]](list)
    for message, examples in sized:
        by_sender[message.sender].append(examples)
    numbers = _range([examples for _, examples in sized])
    senders = _count_words(by_sender, "sender")
    yield f"{senders} with {numbers} examples, read by {_readers(sized)}"
    constant = sum(len(sizes) > 1 and len(set(sizes)) == 1 for sizes in by_sender.values())
    if constant:
        yield f"{constant:,} send the same number in all rounds, which links their messages"


def _metrics(messages: Sequence[Message]) -> Iterator[str]:
    found = [
        (message, message.body.metrics)
        for message in messages
        if isinstance(message.body, Update | UnstoredMessage)
        and message.body.metrics
        and not is_shadow_device(message.sender)
        and message.readers
    ]
    if found:
        yield f"{_ranges(metrics for _, metrics in found)}, read by {_readers(found)}"
        yield from _naming_metrics(found)


def _naming_metrics(found: Sequence[tuple[Message, Mapping[str, float]]]) -> Iterator[str]:
    """Name the metrics that are no figures of the training, such as the number of a partition.

    Each of two or more senders repeats a whole number that no other sends.
    """
    values = defaultdict[str, dict[Party, list[float]]](lambda: defaultdict(list))
    for message, metrics in found:
        for name, value in metrics.items():
            values[name][message.sender].append(value)
    for name, by_sender in sorted(values.items()):
        own = {value for each in by_sender.values() for value in each}
        repeats = all(len(each) > 1 and len(set(each)) == 1 for each in by_sender.values())
        is_whole = all(float(value).is_integer() for value in own)
        if repeats and is_whole and 1 < len(by_sender) == len(own):
            shown = shorten(name, MAX_LENGTH)
            yield f"{shown} is a name: each of {len(own):,} senders repeats its own number"


def _evaluations(messages: Sequence[Message]) -> Iterator[str]:
    found = [
        (message, message.body) for message in messages if isinstance(message.body, Evaluation)
    ]
    if not found:
        return
    senders = {message.sender for message, _ in found}
    figures = _ranges(body.metrics for _, body in found)
    yield f"{_count_words(senders, 'sender')}: {figures}, read by {_readers(found)}"
    sizes = [body.examples for _, body in found if body.examples is not None]
    if sizes:
        yield f"on {_range(sizes)} examples"


def _config(messages: Sequence[Message]) -> Iterator[str]:
    configured = [
        (message, message.body.config)
        for message in messages
        if isinstance(message.body, Broadcast) and message.body.config
    ]
    values = defaultdict[str, dict[str, None]](dict)
    for _, config in configured:
        for name, value in config.items():
            values[name][value] = None
    if values:
        each = [
            f"{shorten(name, MAX_LENGTH)} = {list_names(found, 4)}"
            for name, found in values.items()
        ]
        more = f" and {len(each) - MAX_NAMES:,} more" if len(each) > MAX_NAMES else ""
        yield f"{'; '.join(each[:MAX_NAMES])}{more}, read by {_readers(configured)}"


def _times(messages: Sequence[Message]) -> Iterator[str]:
    sent = sum(m.times is not None and m.times.sent is not None for m in messages)
    if sent:
        yield f"{sent:,} messages contain the time when they were sent"
    answers = list(_response_times(messages))
    if not answers:
        return
    yield f"clients respond in {_range([one.seconds for one in answers])} seconds"
    by_client = defaultdict[Party, list[_ResponseTime]](list)
    for one in answers:
        by_client[one.client].append(one)
    known = [each for each in by_client.values() if all(one.size is not None for one in each)]
    seconds = [fmean(one.seconds for one in each) for each in known]
    sizes = [fmean(one.size or 0 for one in each) for each in known]
    if len(known) < MIN_CLIENTS or len(set(seconds)) < 2 or len(set(sizes)) < 2:
        return
    chance = 1.96 / sqrt(len(known) - 1)
    yield (
        f"rank correlation of response time and size over {len(known):,} clients: "
        f"{_rank_correlation(seconds, sizes):+.2f} (if unrelated: 0, beyond ±{chance:.2f} in "
        "5 % of cases)"
    )


@dataclass(frozen=True, slots=True)
class _ResponseTime:
    client: Party
    seconds: float
    size: int | None


def _response_times(messages: Sequence[Message]) -> Iterator[_ResponseTime]:
    """Yield the time from each broadcast to each update, where both were recorded."""
    began = dict[int, float]()
    for message in messages:
        if message.times is None:
            continue
        sent, received = message.times.sent, message.times.received
        if isinstance(message.body, Broadcast):
            start = received if sent is None else sent
            if start is not None:
                began[message.round] = start
        elif isinstance(message.body, Update) and message.round in began:
            end = sent if received is None else received
            if end is not None:
                seconds = end - began[message.round]
                yield _ResponseTime(message.sender, seconds, message.body.examples)


def _rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rho; both vary."""
    return correlation(_ranks(first), _ranks(second))


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value; equal values share their mean rank."""
    ordered = sorted(values)
    return [(bisect_left(ordered, one) + bisect_right(ordered, one)) / 2 for one in values]


def _names(messages: Sequence[Message]) -> Iterator[str]:
    rounds = defaultdict[Party, set[int]](set)
    named = [
        (message, None)
        for message in messages
        if isinstance(message.body, Update | DistilledSet | Evaluation | UnstoredMessage)
        and message.sender != SERVER
        and not is_shadow_device(message.sender)
        and message.readers
    ]
    if not named:
        return
    for message, _ in named:
        rounds[message.sender].add(message.round)
    if len(set().union(*rounds.values())) < 2:
        return
    again = sum(len(each) > 1 for each in rounds.values())
    if again:
        yield (
            f"{again:,} of {len(rounds):,} appear in more than one round: {_readers(named)} "
            "can link their messages"
        )
    else:
        yield f"none of {len(rounds):,} appears in more than one round"


def _texts(messages: Sequence[Message]) -> Iterator[str]:
    found = [
        (message, message.body.texts)
        for message in messages
        if isinstance(message.body, Update | Evaluation | UnstoredMessage)
        and message.body.texts
        and message.readers
    ]
    if found:
        names = sorted({name for _, texts in found for name in texts})
        senders = {message.sender for message, _ in found}
        yield (
            f"{list_names(names)}: texts or bytes of {_count_words(senders, 'sender')}, whose "
            f"content is not stored, read by {_readers(found)}"
        )


def _unstored(messages: Sequence[Message]) -> Iterator[str]:
    by_kind = defaultdict[str, list[tuple[Message, str]]](list)
    for message in messages:
        if isinstance(message.body, UnstoredMessage):
            by_kind[message.body.kind].append((message, message.body.reason))
    for kind, found in sorted(by_kind.items()):
        senders = {message.sender for message, _ in found}
        reasons = list_names(list(dict.fromkeys(reason for _, reason in found)), 2)
        content = "weights that are masked" if kind == "masked" else kind
        reads = "nobody" if kind == "masked" else _readers(found)
        yield (
            f"{len(found):,} of {_count_words(senders, 'sender')}: {content}, read by {reads}: "
            f"{reasons}"
        )


def _absent_tensors(messages: Sequence[Message]) -> Iterator[str]:
    found = [
        message.body.absent
        for message in messages
        if isinstance(message.body, Update) and message.body.absent
    ]
    if found:
        names = dict.fromkeys(name for absent in found for name in absent)
        yield (
            f"{list_names(names)}: not in {len(found):,} "
            f"{'update' if len(found) == 1 else 'updates'}, where "
            f"{'it counts' if len(names) == 1 else 'they count'} as unchanged"
        )


def _missing_updates(messages: Sequence[Message]) -> Iterator[str]:
    missing = [
        (message, message.body)
        for message in messages
        if isinstance(message.body, MissingReply)
    ]
    if missing:
        reasons = dict.fromkeys(body.reason or "no reason" for _, body in missing)
        senders = {message.sender for message, _ in missing}
        yield f"{len(missing):,} of {_count_words(senders, 'sender')}: {list_names(reasons, 3)}"


def _ranges(each: Iterable[Mapping[str, float]]) -> str:
    values = defaultdict[str, list[float]](list)
    for metrics in each:
        for name, value in metrics.items():
            values[name].append(value)
    ranges = [
        f"{shorten(name, MAX_LENGTH)} {_range(found)}" for name, found in sorted(values.items())
    ]
    return list_names(ranges) if ranges else "no figures"


def _range(values: Sequence[int] | Sequence[float]) -> str:
    low, high = min(values), max(values)
    return _number(low) if low == high else f"{_number(low)} to {_number(high)}"


def _number(value: int | float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _readers(pairs: Iterable[tuple[Message, object]]) -> str:
    readers = set[Party]().union(*(message.readers for message, _ in pairs))
    return (
        list_names(sorted(readers, key=lambda party: (party != SERVER, party)), 3) or "nobody"
    )


def _count_words(names: Collection[Party], noun: str) -> str:
    return f"{len(names):,} {noun}{'' if len(names) == 1 else 's'}"


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
