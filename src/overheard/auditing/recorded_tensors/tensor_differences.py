"""Says how the tensors of a recording differ from those of the plan's network."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import final

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.weights import Shapes
from overheard.auditing.recorded_tensors.network_tensors import Axes, NetworkTensors

MOST_NAMES = 4
"""The most tensors that an error names."""

QUANTISED = (
    "quantized",
    "quantised",
    "qweight",
    "_packed_params",
    "zero_point",
    "qzeros",
    "absmax",
    "quant_map",
    "quant_state",
    "weight_scale",
    ".scales",
    ".SCB",
)
"""Parts of names that only quantised weights have."""

COUNTER = "num_batches_tracked"
"""The last part of the name of a whole number that every batch norm has."""


@final
@dataclass(frozen=True, slots=True)
class Recorded:
    """The tensors of a recording that were compared with a network.

    Args:
        shapes: the shapes by name.
        recorded_names: by name in the network the recorded one, as far as there is one.
        left_out: names of tensors that were sent and not recorded.
        stated: what the recording states about its model.

    """

    shapes: Shapes
    recorded_names: Mapping[str, str]
    left_out: tuple[str, ...]
    stated: str


def describe_differences(recorded: Recorded, tensors: NetworkTensors) -> str:
    """Return what differs and what to do, as a sentence without a full stop."""
    if not recorded.shapes:
        return "no tensor is in all of its broadcasts: record the model of each round"
    missing = [name for name in tensors.parameters if name not in recorded.recorded_names]
    used = set(recorded.recorded_names.values())
    extra = [name for name in recorded.shapes if name not in used]
    wrong = [
        name
        for name, there in recorded.recorded_names.items()
        if recorded.shapes[there] != tensors.shapes[name]
    ]
    differences = _differences(recorded, tensors, missing, wrong)
    also = f"the recording also has {listed(extra, recorded.shapes)}" if extra else ""
    not_recorded = _not_recorded(recorded, tensors)
    if not_recorded:
        return f"{not_recorded}. {differences or also}"
    special = (
        _outputs(recorded, tensors, wrong)
        or _inputs(recorded, tensors, wrong)
        or _places(tensors, wrong)
    )
    if special and not missing:
        return f"{differences}: {special}"
    if not wrong and not missing:
        return f"{also}, which the plan's training.model does not have: add them to the network"
    if missing and not wrong and _are_same_shapes(recorded, tensors):
        return (
            f"it has the shapes of the plan's training.model under other names: "
            f"{listed(extra, recorded.shapes)} for {listed(missing, tensors.shapes)}. Give the "
            "layers of the network the names of the run, or record the run under those of the "
            "network"
        )
    return f"{differences}{_mend(recorded, tensors, len(wrong), also)}"


def _mend(recorded: Recorded, tensors: NetworkTensors, wrong: int, also: str) -> str:
    """Return what to do if several tensors differ; it may be another model."""
    right = len(recorded.recorded_names) - wrong
    if right < len(recorded.shapes) and 2 * right <= len(tensors.parameters):
        return f". {_another_model(recorded, tensors)}"
    mends = (
        also,
        "let the plan's training.model have these tensors, with these shapes. What the run did "
        "not send, such as the base of adapters, must have requires_grad = False",
    )
    return f": {'; '.join(filter(None, mends))}"


def listed(names: Collection[str], shapes: Shapes) -> str:
    """Return the first names with their shapes, and how many there are more."""
    return _names([f"{name} {_shape(shapes[name])}" for name in names])


def _names(names: Collection[str]) -> str:
    first = [printable_excerpt(name) for name in list(names)[:MOST_NAMES]]
    return ", ".join(first) + _more(len(names) - MOST_NAMES)


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _differences(
    recorded: Recorded, tensors: NetworkTensors, missing: list[str], wrong: list[str]
) -> str:
    """Name the network's tensors that were not sent, or were sent with another shape."""
    texts = [
        f"{printable_excerpt(name)} is missing in the recording and "
        f"{_shape(tensors.shapes[name])} in the plan"
        for name in missing
    ] + [
        f"{printable_excerpt(recorded.recorded_names[name])} is "
        f"{_shape(recorded.shapes[recorded.recorded_names[name]])} in the recording and "
        f"{_shape(tensors.shapes[name])} in the plan"
        for name in wrong
    ]
    return "; ".join(texts[:MOST_NAMES]) + _more(len(texts) - MOST_NAMES)


def _not_recorded(recorded: Recorded, tensors: NetworkTensors) -> str:
    """Return what to do if the run sent tensors of the network that were not recorded."""
    both = (*recorded.shapes, *recorded.left_out)
    quantised = [name for name in both if any(part in name for part in QUANTISED)]
    if quantised:
        return (
            f"its weights are quantised ({_names(quantised)}): save de-quantised weights, as "
            "floating-point numbers, under the names of the network"
        )
    left_out = [name for name in recorded.left_out if name in tensors.parameters]
    if left_out:
        return (
            f"tensors that were sent are not in the recording: {_names(left_out)}. They are "
            "whole numbers, as quantised weights are, or `tensors` of about.toml leaves them "
            "out: record them, as floating-point numbers"
        )
    return ""


def _outputs(recorded: Recorded, tensors: NetworkTensors, wrong: list[str]) -> str:
    """Return what to do if only the number of outputs differs; empty if more does."""
    pairs = [
        (recorded.shapes[recorded.recorded_names[one]], tensors.shapes[one]) for one in wrong
    ]
    numbers = {(there[:1], ours[:1]) for there, ours in pairs}
    if not wrong or set(wrong) != set(tensors.last) or len(numbers) > 1:
        return ""
    if any(there[1:] != ours[1:] for there, ours in pairs):
        return ""
    there, ours = pairs[0]
    return (
        f"the run's model has {there[0]} outputs and the plan's {ours[0]}. Name the data of "
        f"the run in the plan, with its {there[0]} classes, or correct the last layer"
    )


def _inputs(recorded: Recorded, tensors: NetworkTensors, wrong: list[str]) -> str:
    """Return what to do if only the number of inputs differs; empty if more does."""
    if wrong != [tensors.first]:
        return ""
    there, ours = recorded.shapes[recorded.recorded_names[wrong[0]]], tensors.shapes[wrong[0]]
    if len(there) < 2 or there[:1] + there[2:] != ours[:1] + ours[2:]:
        return ""
    what = "inputs" if len(there) == 2 else "channels"
    return (
        f"the run's model reads {there[1]} {what} and the plan's {ours[1]}. Name the data of "
        f"the run in the plan, with its {there[1]} {what}, or correct the first layer"
    )


def _places(tensors: NetworkTensors, wrong: list[str]) -> str:
    """Return what to do if only the layer that reads flattened outputs differs."""
    if not tensors.flattened or wrong != [f"{tensors.flattened}.weight"]:
        return ""
    return (
        f"{tensors.flattened} reads the flattened outputs of a convolution, so that inputs of "
        "the run have another size. Name the data of the run in the plan, with this size"
    )


def _are_same_shapes(recorded: Recorded, tensors: NetworkTensors) -> bool:
    """Return whether the shapes are the network's, or would be with kernels transposed."""
    ours = [tensors.shapes[name] for name in tensors.parameters]
    turned = [
        _turned_back(tensors.shapes[name], tensors.kernels.get(name, ((),))[0])
        for name in tensors.parameters
    ]
    buffers = [tensors.shapes[name] for name in tensors.shapes if name in tensors.buffers]
    lists = (ours, turned, ours + buffers, turned + buffers)
    return sorted(recorded.shapes.values()) in [sorted(one) for one in lists]


def _turned_back(shape: tuple[int, ...], axes: Axes) -> tuple[int, ...]:
    """Return the shape of which these axes make this one; without axes, the shape itself."""
    return tuple(shape[axes.index(axis)] for axis in range(len(axes))) if axes else shape


def _another_model(recorded: Recorded, tensors: NetworkTensors) -> str:
    stated = printable_excerpt(recorded.stated) or "which the recording does not state"
    hidden = (
        f". It was sent with further tensors that are not in the recording, such as whole "
        f"numbers: {_names(recorded.left_out)}"
        if any(not name.endswith(COUNTER) for name in recorded.left_out)
        else ""
    )
    return (
        f"It broadcasts {_names(recorded.shapes)}, and the plan's training.model has "
        f"{_names(tensors.shapes)}: set training.model to the model of the run, {stated}"
        f"{hidden}. What the run did not send, such as the base of adapters, must have "
        "requires_grad = False"
    )
