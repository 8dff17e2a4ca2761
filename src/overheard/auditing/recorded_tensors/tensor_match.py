"""Which tensor of a recording is which of a network, and with which axes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

from overheard.archive.weights import Shapes
from overheard.auditing.recorded_tensors.network_tensors import Axes, NetworkTensors
from overheard.auditing.recorded_tensors.tensor_differences import listed


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


def orient(
    found: Mapping[str, str], recorded: Shapes, tensors: NetworkTensors
) -> TensorMatch | TensorMismatch | None:
    """Return the match if all shapes agree, as they are or with all kernels transposed."""
    if all(recorded[there] == tensors.shapes[name] for name, there in found.items()):
        return TensorMatch(dict(found), {})
    return orient_kernels(found, recorded, tensors, is_named=False)


def orient_kernels(
    found: Mapping[str, str], recorded: Shapes, tensors: NetworkTensors, *, is_named: bool
) -> TensorMatch | TensorMismatch | None:
    """Return the match with all kernels transposed, if the shapes then agree; None if not.

    Args:
        found: by name in the network the recorded one.
        recorded: the shapes of the recorded tensors by name.
        tensors: those that the network sends.
        is_named: whether names tell that kernels are inputs x outputs, square ones too.

    """
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
