"""Matches the tensors of a recording with those that a network sends."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.weights import Shapes
from overheard.auditing.recorded_tensors.layer_matching import match_layers
from overheard.auditing.recorded_tensors.name_matching import match_names, nearest_names
from overheard.auditing.recorded_tensors.network_tensors import NetworkTensors
from overheard.auditing.recorded_tensors.position_matching import (
    match_positions,
    nearest_order,
)
from overheard.auditing.recorded_tensors.tensor_differences import (
    Recorded,
    describe_differences,
)
from overheard.auditing.recorded_tensors.tensor_match import (
    TensorMatch,
    TensorMismatch,
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
