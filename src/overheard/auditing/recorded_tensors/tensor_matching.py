"""Matches the tensors of a recording with those that a network sends."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import final

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.weights import Shapes
from overheard.auditing.recorded_tensors.layer_matching import match_layers
from overheard.auditing.recorded_tensors.network_tensors import (
    Axes,
    NetworkTensors,
)
from overheard.auditing.recorded_tensors.tensor_differences import (
    Recorded,
    describe_differences,
    listed,
)

WRAPPERS = frozenset(
    {
        "module",  # DataParallel, DistributedDataParallel
        "_orig_mod",  # torch.compile
        "_module",  # Opacus
        "_fsdp_wrapped_module",
        "_checkpoint_wrapped_module",
        "base_layer",  # the layer to which PEFT adds an adapter
    }
)
"""Parts of names that wrappers and adapters put between those of the network."""

NAMED_ADAPTERS = ("lora_", "modules_to_save")
"""How parts of names begin after which PEFT may put the name of an adapter, or not."""

MOST_PARTS = 20
"""The most first parts of names that are compared without."""

NUMBER = re.compile(r"(\d{1,18})")
"""A number in a name; longer ones are no positions."""


@final
@dataclass(frozen=True, slots=True)
class TensorMatch:
    """Which tensor of a recording is which of a network.

    Args:
        names: by the name under which the network sends a tensor, its name in the recording.
        axes: by the name in the network, how to permute the axes of the recorded tensor;
            tensors without an entry are recorded as the network has them.
        copies: pairs of recorded names that must hold the same numbers, since the network has
            one tensor for both.
        notes: sentences on what was assumed.

    """

    names: Mapping[str, str]
    axes: Mapping[str, Axes]
    copies: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def in_record(self, prefix: str) -> "TensorMatch":
        """Return the match for recorded names that begin with this prefix."""
        return replace(
            self,
            names={name: prefix + one for name, one in self.names.items()},
            copies=tuple((prefix + one, prefix + other) for one, other in self.copies),
        )


@final
@dataclass(frozen=True, slots=True)
class TensorMismatch:
    """Why the tensors of a recording are not those of a network.

    Args:
        reason: what differs and what to do, as a sentence without a full stop.
        common: the number of the network's tensors that the recording has.

    """

    reason: str
    common: int = 0


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
    for match in (_match_names, _match_positions, _match_layer_names):
        found = match(recorded, tensors)
        if isinstance(found, TensorMatch):
            return replace(found, notes=(*found.notes, *_sharing_note(tensors)))
        if found is not None:
            return found
    named = _best_names(recorded, tensors)
    nearest = named or _in_order(recorded, tensors)
    turned = _turn_fitting(nearest, recorded, tensors)
    description = Recorded(turned, nearest, tuple(left_out), stated)
    notes = (
        "its tensors are named by position" if nearest and not named else "",
        "its kernels are inputs x outputs" if turned != recorded else "",
        describe_differences(description, tensors),
    )
    return TensorMismatch("; ".join(filter(None, notes)), len(nearest))


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


def plain_name(name: str) -> str:
    """Return a name without what wrappers and adapters put into it.

    >>> plain_name("module._orig_mod.fc.base_layer.weight")
    'fc.weight'
    >>> plain_name("fc.lora_A.default.weight")
    'fc.lora_A.weight'
    """
    parts, is_adapter_next = list[str](), False
    for part in unicodedata.normalize("NFKC", name).split("."):
        if part in WRAPPERS:
            continue
        if is_adapter_next and part not in {"weight", "bias"}:
            is_adapter_next = False
            continue
        is_adapter_next = part.startswith(NAMED_ADAPTERS)
        if part != "modules_to_save":
            parts.append(part)
    return ".".join(parts)


def _match_names(
    recorded: Shapes, tensors: NetworkTensors
) -> TensorMatch | TensorMismatch | None:
    """Match by name; a recording with further layers is another model."""
    for names in _namings(recorded, tensors):
        found = _select_by_name(names, tensors)
        match = _orient(found, recorded, tensors)
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


def _best_names(recorded: Shapes, tensors: NetworkTensors) -> dict[str, str]:
    """Return the naming with most tensors that fit."""
    found = [_select_by_name(names, tensors) for names in _namings(recorded, tensors)]
    return max(
        found,
        key=lambda one: (
            sum(recorded[there] == tensors.shapes[name] for name, there in one.items()),
            len(one),
        ),
    )


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


def _match_positions(
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
    match = _orient(in_order, recorded, tensors)
    if not isinstance(match, TensorMatch):
        return None
    beyond = len(places) - len(order)
    extra = (f"the {beyond} tensors after those of the model are not read",) if beyond else ()
    note = (
        f"its tensors are named by position ({printable_excerpt(places[0])}, ...), and were "
        "matched in the order of the plan's model"
    )
    return replace(match, copies=tuple(copies), notes=(note, *match.notes, *extra))


def _in_order(recorded: Shapes, tensors: NetworkTensors) -> dict[str, str]:
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


def _match_layer_names(
    recorded: Shapes, tensors: NetworkTensors
) -> TensorMatch | TensorMismatch | None:
    found = match_layers(recorded, tensors)
    if found is None:
        return None
    if isinstance(found, str):
        return TensorMismatch(found, len(tensors.shapes))
    return _with_turned(found, recorded, tensors, is_named=True)


def _orient(
    found: Mapping[str, str], recorded: Shapes, tensors: NetworkTensors
) -> TensorMatch | TensorMismatch | None:
    """Return the match if all shapes agree, as they are or with all kernels transposed."""
    if all(recorded[there] == tensors.shapes[name] for name, there in found.items()):
        return TensorMatch(dict(found), {})
    return _with_turned(found, recorded, tensors, is_named=False)


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


def _with_turned(
    found: Mapping[str, str], recorded: Shapes, tensors: NetworkTensors, *, is_named: bool
) -> TensorMatch | TensorMismatch | None:
    axes = dict[str, Axes]()
    for name, there in found.items():
        shape, wanted = recorded[there], tensors.shapes[name]
        turned = [
            one
            for one in tensors.kernels.get(name, ())
            if len(one) == len(shape) and tuple(shape[axis] for axis in one) == wanted
        ]
        if turned:
            axes[name] = turned[0]
        elif name in tensors.kernels or shape != wanted:
            return None
    if not axes:
        return TensorMatch(dict(found), {})
    if tensors.flattened:
        return TensorMismatch(
            "its kernels are inputs x outputs, and those of the plan's training.model are "
            f"outputs x inputs; {tensors.flattened} reads flattened outputs of a convolution, "
            "whose order is then another one too (height, width, channels): transpose the "
            "kernels before you import them, and put the inputs of that layer into the order "
            "of the network (channels, height, width)",
            len(found),
        )
    square = [name for name in axes if len(set(tensors.shapes[name])) == 1]
    note = "its kernels are inputs x outputs, and were transposed"
    if square and not is_named:
        names = listed(square, tensors.shapes)
        note += f"; {names} could be either, and was taken to be as the others"
    return TensorMatch(dict(found), axes, notes=(note,))
