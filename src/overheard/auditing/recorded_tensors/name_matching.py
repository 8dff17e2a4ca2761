"""Matches tensors by name, with or without what wrappers and adapters add to names."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import takewhile

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.weights import Shapes
from overheard.auditing.recorded_tensors.network_tensors import NetworkTensors
from overheard.auditing.recorded_tensors.tensor_differences import listed
from overheard.auditing.recorded_tensors.tensor_match import TensorMatch, TensorMismatch, orient
from overheard.learning.custom_networks.tensor_names import plain_name

MOST_PARTS = 20
"""The most first parts of names that are compared without."""


def match_names(
    recorded: Shapes, tensors: NetworkTensors
) -> TensorMatch | TensorMismatch | None:
    """Match by name; a recording with further layers is another model."""
    for names in _namings(recorded, tensors):
        found = _select_by_name(names, tensors)
        match = orient(found, recorded, tensors)
        if match is None or not set(tensors.parameters) <= found.keys():
            continue
        foreign = _further_layers(recorded, names, tensors)
        if foreign:
            return TensorMismatch(
                f"the recording also has {listed(foreign, recorded)}, which the plan's "
                "training.model does not have: add these layers to the network, as they are in "
                "the run, with requires_grad = False if they are not trained",
                len(found),
            )
        if isinstance(match, TensorMismatch):
            return match
        copies = tuple(
            (names[name], found[sent])
            for name, sent in tensors.names.items()
            if sent in found and name in names and names[name] != found[sent]
        )
        if any(recorded[one] != recorded[other] for one, other in copies):
            continue
        return replace(match, copies=copies, notes=(*_naming_note(found), *match.notes))
    return None


def nearest_names(recorded: Shapes, tensors: NetworkTensors) -> dict[str, str]:
    """Return the naming with most tensors that fit."""
    found = [_select_by_name(names, tensors) for names in _namings(recorded, tensors)]
    return max(
        found,
        key=lambda one: (
            sum(recorded[there] == tensors.shapes[name] for name, there in one.items()),
            len(one),
        ),
    )


def _namings(recorded: Shapes, tensors: NetworkTensors) -> Iterator[dict[str, str]]:
    """Yield, by name in the network, the recorded name that may be the same.

    First equal names, then names without what wrappers add, then also without the first parts
    that all names of the recording, or of the network, share.
    """
    yield {name: name for name in tensors.names if name in recorded}
    ours = _without_clashes(tensors.names)
    theirs = _without_clashes(recorded)
    for shared in range(min(_shared_parts(theirs), MOST_PARTS) + 1):
        for own in range(min(_shared_parts(ours), MOST_PARTS) + 1):
            short = {_without_parts(name, shared): one for name, one in theirs.items()}
            yield {
                one: short[_without_parts(name, own)]
                for name, one in ours.items()
                if _without_parts(name, own) in short
            }


def _without_clashes(names: Collection[str]) -> dict[str, str]:
    """Return each name by its plain form, without those whose plain form is not their own."""
    plain = {name: plain_name(name) for name in names}
    count = Counter(plain.values())
    return {short: name for name, short in plain.items() if count[short] == 1}


def _shared_parts(names: Collection[str]) -> int:
    """Return how many first parts all names share; the last part of a name does not count."""
    columns = zip(*(name.split(".")[:-1] for name in names), strict=False)
    return len(list(takewhile(lambda column: len(set(column)) == 1, columns)))


def _without_parts(name: str, count: int) -> str:
    return ".".join(name.split(".")[count:])


def _select_by_name(names: Mapping[str, str], tensors: NetworkTensors) -> dict[str, str]:
    """Return by sent name the recorded one, which may be another name of the same tensor."""
    found = dict[str, str]()
    for name in tensors.shapes:
        if name in names:
            found[name] = names[name]
    for name, sent in tensors.names.items():
        if name in names and sent in tensors.shapes:
            found.setdefault(sent, names[name])
    return {name: found[name] for name in tensors.shapes if name in found}


def _further_layers(
    recorded: Shapes, names: Mapping[str, str], tensors: NetworkTensors
) -> list[str]:
    """Return recorded weights of layers that the network does not have, frozen ones included.

    Other records than that of the model are not compared; neither are tensors that are no
    layer's, such as counters.
    """
    known = set(names.values())
    ours = {plain_name(one) for one in tensors.names}
    records = {name.rpartition("/")[0] for name in known}
    return [
        name
        for name in recorded
        if name not in known
        and name.rpartition("/")[0] in records
        and name.rpartition(".")[2] in {"weight", "bias"}
        and plain_name(name) not in ours
    ]


def _naming_note(found: Mapping[str, str]) -> tuple[str, ...]:
    other = [(name, there) for name, there in found.items() if name != there]
    if not other:
        return ()
    name, there = other[0]
    if all(there.endswith(f".{name}") for name, there in other):
        what = f"the prefix {printable_excerpt(there.removesuffix(name))!r} of its names"
        if all(
            there.removesuffix(name) == other[0][1].removesuffix(other[0][0])
            for name, there in other
        ):
            return (f"{what} was removed, as the plan's model has none",)
    return (
        "prefixes of wrappers and names of adapters were not compared: for example, "
        f"{printable_excerpt(there)} is {printable_excerpt(name)} of the plan's model",
    )
