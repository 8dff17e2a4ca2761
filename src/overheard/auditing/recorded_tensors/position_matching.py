"""Matches tensors that are named by their positions in a list."""

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.weights import Shapes
from overheard.auditing.recorded_tensors.network_tensors import NetworkTensors
from overheard.auditing.recorded_tensors.tensor_match import TensorMatch, TensorMismatch, orient

NUMBER = re.compile(r"(\d{1,18})")
"""A number in a name; longer ones are no positions."""


def match_positions(
    recorded: Shapes, tensors: NetworkTensors
) -> TensorMatch | TensorMismatch | None:
    """Match by position in a list, if one order of the network's tensors fits."""
    places = sort_positions(recorded)
    if not places:
        return None
    fits = list(_fitting_orders(places, recorded, tensors))
    if not fits:
        return None
    different = {tuple(sorted(one.names.items())) for one in fits}
    if len(different) > 1:
        return TensorMismatch(
            "its tensors have no names, and more than one order of the tensors of the plan's "
            "training.model fits their shapes: record them under the names of the network",
            len(tensors.shapes),
        )
    return fits[0]


def nearest_order(recorded: Shapes, tensors: NetworkTensors) -> dict[str, str]:
    """Return the tensors at the positions of the order that fits best, for an error."""
    places = sort_positions(recorded)
    orders = [
        {tensors.names[name]: place for name, place in zip(order, places, strict=False)}
        for order in tensors.orders
    ]
    fitting = [
        {name: place for name, place in order.items() if name in tensors.shapes}
        for order in orders
    ]
    return max(
        fitting,
        key=lambda one: sum(
            recorded[place] == tensors.shapes[name] for name, place in one.items()
        ),
    )


def sort_positions(names: Collection[str]) -> tuple[str, ...]:
    """Return the names of a list's tensors in its order; empty if they are no positions.

    Lists may be inside lists. TensorFlow numbers the first of several variables not at all.

    >>> sort_positions(["arr_10", "arr_9"]), sort_positions(["0", "weight"])
    (('arr_9', 'arr_10'), ())
    >>> sort_positions(["1/0", "0/1", "0/0"]), sort_positions(["v_1:0", "v:0"])
    (('0/0', '0/1', '1/0'), ('v:0', 'v_1:0'))
    """
    short = {name: re.sub(r":0$", "", name) for name in names}
    first = min(short.values(), key=len, default="")
    parts = {
        name: NUMBER.split(f"{one}_0" if one == first and len(names) > 1 else one)
        for name, one in short.items()
    }
    if any(one[0::2] != next(iter(parts.values()))[0::2] for one in parts.values()):
        parts = {name: NUMBER.split(one) for name, one in short.items()}
    texts = {tuple(one[0::2]) for one in parts.values()}
    numbers = {name: tuple(map(int, one[1::2])) for name, one in parts.items()}
    if len(texts) != 1 or len(set(numbers.values())) < len(names) or not all(numbers.values()):
        return ()
    return tuple(sorted(numbers, key=numbers.__getitem__))


def _fitting_orders(
    places: tuple[str, ...], recorded: Shapes, tensors: NetworkTensors
) -> Iterator[TensorMatch]:
    """Yield the matches of a list with the orders of the network's tensors that fit.

    After the tensors of the model there may be as many again of the shapes of its parameters,
    such as control variates.
    """
    changed = [tensors.shapes[name] for name in tensors.parameters]
    for is_longer in (False, True):
        for is_turned in (False, True):
            matches = [
                match
                for order in tensors.orders
                if set(tensors.parameters) <= {tensors.names[name] for name in order}
                and _is_length(places, order, recorded, changed if is_longer else None)
                and (match := _match_order(places, order, recorded, tensors)) is not None
                and bool(match.axes) == is_turned
            ]
            if matches:
                yield from matches
                return


def _is_length(
    places: tuple[str, ...],
    order: tuple[str, ...],
    recorded: Shapes,
    changed: list[tuple[int, ...]] | None,
) -> bool:
    beyond = [recorded[place] for place in places[len(order) :]]
    if changed is None or not beyond:
        return len(places) == len(order)
    return len(beyond) % len(changed) == 0 and beyond == changed * (len(beyond) // len(changed))


def _match_order(
    places: tuple[str, ...],
    order: tuple[str, ...],
    recorded: Shapes,
    tensors: NetworkTensors,
) -> TensorMatch | None:
    found, copies = dict[str, str](), list[tuple[str, str]]()
    for name, place in zip(order, places, strict=False):
        sent = tensors.names[name]
        is_sent = sent in tensors.shapes
        if not is_sent and recorded[place] != tensors.listed_shapes[name]:
            return None
        if is_sent and found.setdefault(sent, place) != place:
            copies.append((place, found[sent]))
    if any(recorded[one] != recorded[other] for one, other in copies):
        return None
    in_order = {name: found[name] for name in tensors.shapes if name in found}
    match = orient(in_order, recorded, tensors)
    if not isinstance(match, TensorMatch):
        return None
    beyond = len(places) - len(order)
    extra = (f"the {beyond} tensors after those of the model are not read",) if beyond else ()
    note = (
        f"its tensors are named by position ({printable_excerpt(places[0])}, ...), and were "
        "matched in the order of the plan's model"
    )
    return replace(match, copies=tuple(copies), notes=(note, *match.notes, *extra))
