"""Matches the tensors of a recording with those that a network sends."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.weights import Shapes
from overheard.auditing.recorded_tensors.layer_matching import match_layers
from overheard.auditing.recorded_tensors.name_matching import match_names, nearest_names
from overheard.auditing.recorded_tensors.network_tensors import NetworkTensors
from overheard.auditing.recorded_tensors.tensor_differences import (
    Recorded,
    describe_differences,
)
from overheard.auditing.recorded_tensors.tensor_match import (
    TensorMatch,
    TensorMismatch,
    orient,
    orient_kernels,
)


def match_tensors(
    recorded: Shapes,
    tensors: NetworkTensors,
    *,
    left_out: Collection[str] = (),
    stated: str = "",
) -> TensorMatch | TensorMismatch:
    """Match the tensors of a recording with those of a network, if only one way fits.

    Names are compared first, also without what wrappers and adapters add to them; then
    positions in a list; then layers of Keras and JAX, whose kernels are inputs x outputs.
    Buffers may be missing.

    Args:
        recorded: the shapes of the recorded tensors by name.
        tensors: those that the network sends.
        left_out: names of tensors that were sent and not recorded.
        stated: what the recording states about its model.

    Returns:
        The match, or what differs. The numbers of tensors that the network has once and the
        recording twice are not compared here.

    """
    if not tensors.parameters:
        return TensorMismatch("the plan's training.model has no parameter that is trained")
    for match in (match_names, match_positions, _match_layer_names):
        found = match(recorded, tensors)
        if isinstance(found, TensorMatch):
            return replace(found, notes=(*found.notes, *_sharing_note(tensors)))
        if found is not None:
            return found
    named = nearest_names(recorded, tensors)
    nearest = named or nearest_order(recorded, tensors)
    turned = _turn_fitting(nearest, recorded, tensors)
    description = Recorded(turned, nearest, tuple(left_out), stated)
    notes = (
        _position_note(recorded, tensors) if nearest and not named else "",
        "its kernels are inputs x outputs" if turned != recorded else "",
        describe_differences(description, tensors),
    )
    return TensorMismatch("; ".join(filter(None, notes)), len(nearest))


def _position_note(recorded: Shapes, tensors: NetworkTensors) -> str:
    note = "its tensors are named by position"
    if len(recorded) >= len(tensors.parameters):
        return note
    return (
        f"{note}, and are fewer than those of the plan's training.model: if clients kept some "
        "at home, such as those of batch norms, save the others under their names"
    )


def _match_layer_names(
    recorded: Shapes, tensors: NetworkTensors
) -> TensorMatch | TensorMismatch | None:
    found = match_layers(recorded, tensors)
    if found is None:
        return None
    if isinstance(found, str):
        return TensorMismatch(found, len(tensors.shapes))
    return orient_kernels(found, recorded, tensors, is_named=True)


def _sharing_note(tensors: NetworkTensors) -> tuple[str, ...]:
    """Return a note if the last layer has a tensor that another layer has too."""
    shared = [
        name for name, sent in tensors.names.items() if name != sent and sent in tensors.last
    ]
    if not shared:
        return ()
    return (
        f"the last layer shares {printable_excerpt(tensors.names[shared[0]])} with another "
        "layer, and attacks that read it read the changes of both",
    )


def _turn_fitting(
    found: Mapping[str, str], recorded: Shapes, tensors: NetworkTensors
) -> Shapes:
    """Return the shapes with kernels transposed, if more of them fit then; for an error."""
    turned = dict(recorded)
    for name, there in found.items():
        axes, shape = tensors.kernels.get(name, ((),))[0], recorded[there]
        if axes and len(axes) == len(shape):
            turned[there] = tuple(shape[axis] for axis in axes)

    def fitting(shapes: Shapes) -> int:
        return sum(shapes[there] == tensors.shapes[name] for name, there in found.items())

    return turned if fitting(turned) > fitting(recorded) else recorded


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
