"""Matches layers that are named as Keras and JAX name them, by their shapes and numbers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.weights import Shapes
from overheard.auditing.recorded_tensors.network_tensors import NetworkTensors
from overheard.auditing.recorded_tensors.tensor_differences import listed

ROLES: Mapping[str, str] = MappingProxyType(
    {
        "kernel": "weight",
        "depthwise_kernel": "weight",
        "w": "weight",
        "embeddings": "weight",
        "embedding": "weight",
        "gamma": "weight",
        "scale": "weight",
        "bias": "bias",
        "b": "bias",
        "beta": "bias",
        "offset": "bias",
        "moving_mean": "running_mean",
        "mean": "running_mean",
        "moving_variance": "running_var",
        "var": "running_var",
    }
)
"""By the last part of a name in Keras, Flax or Haiku, the last part of PyTorch's name."""

KERNELS = frozenset({"kernel", "depthwise_kernel", "w"})
"""Parts that only Keras and JAX use; they have the axes inputs, outputs."""

_NUMBER = re.compile(r"_?(\d{1,18})")
_ENDING = re.compile(r":\d+$|/\.ATTRIBUTES/VARIABLE_VALUE$")
"""What TensorFlow appends to names."""

_COLLECTION = re.compile(r"^(params|batch_stats|state)[./]")
"""Flax keeps a layer's parameters and running statistics in two collections."""


@final
@dataclass(frozen=True, slots=True)
class _Layer:
    """Names of a layer's tensors by role ("weight", ...)."""

    name: str
    tensors: Mapping[str, str]


def match_layers(recorded: Shapes, tensors: NetworkTensors) -> dict[str, str] | str | None:
    """Match each recorded layer with one of the network, if only one way fits.

    Layers of the same shapes are matched in the order of their numbers: dense, dense_1.

    Args:
        recorded: the shapes of the recorded tensors by name.
        tensors: those that the network sends.

    Returns:
        By the name in the network the recorded one; or what differs, or why there are several
        ways, as a sentence; or None if the names are not those of Keras or JAX.

    """
    theirs, ours = _recorded_layers(recorded), _network_layers(tensors)
    if not theirs:
        return None
    groups = dict[tuple[int, ...], list[_Layer]]()
    for layer in theirs:
        alike = (i for i, one in enumerate(ours) if _fits(layer, one, recorded, tensors))
        groups.setdefault(tuple(alike), []).append(layer)
    covered = {place for places in groups for place in places}
    if len(covered) != len(ours) or any(_differ(*one) for one in groups.items()):
        return _describe_others(groups, ours, recorded, tensors)
    found = dict[str, str]()
    for places, layers in groups.items():
        if len({_NUMBER.sub("", one.name) for one in layers}) > 1:
            names = ", ".join(printable_excerpt(one.name) for one in layers)
            return (
                f"the layers {names} have the same shapes and no common numbers, so that their "
                "order is unknown: record tensors under the names of the network"
            )
        in_order = sorted(layers, key=lambda one: _numbers(one.name))
        for place, layer in zip(places, in_order, strict=True):
            found |= {ours[place].tensors[role]: one for role, one in layer.tensors.items()}
    return {name: found[name] for name in tensors.shapes if name in found}


def _differ(places: tuple[int, ...], layers: list[_Layer]) -> bool:
    """Return whether the recorded layers are not as many as those of the network like them."""
    return len(places) != len(layers)


def _describe_others(
    groups: Mapping[tuple[int, ...], list[_Layer]],
    ours: list[_Layer],
    recorded: Shapes,
    tensors: NetworkTensors,
) -> str:
    """Return which layers only one of both has."""
    differing = {places: layers for places, layers in groups.items() if _differ(places, layers)}
    fitting = {place for places in groups for place in places if places not in differing}
    theirs = [one for layers in differing.values() for one in layers]
    others = [one for place, one in enumerate(ours) if place not in fitting]
    return (
        "its tensors are named as in Keras or JAX, whose kernels are inputs x outputs, and "
        "its layers are others than those of the plan's training.model: it has "
        f"{_list_layers(theirs, recorded)}, and the plan's network has "
        f"{_list_layers(others, tensors.shapes)} instead: give the network the layers of the "
        "run"
    )


def _list_layers(layers: list[_Layer], shapes: Shapes) -> str:
    names = [name for layer in layers for name in layer.tensors.values()]
    return listed(names, shapes) or "none"


def _recorded_layers(recorded: Shapes) -> list[_Layer]:
    layers = dict[str, dict[str, str]]()
    if not any(_split(name)[1] in KERNELS for name in recorded):
        return []
    for name in recorded:
        layer, part = _split(name)
        role = ROLES.get(part, part)
        tensors = layers.setdefault(layer, {})
        if not layer or role in tensors:
            return []
        tensors[role] = name
    return [_Layer(name, tensors) for name, tensors in layers.items()]


def _network_layers(tensors: NetworkTensors) -> list[_Layer]:
    layers = dict[str, dict[str, str]]()
    for name in tensors.shapes:
        layer, _, part = name.rpartition(".")
        layers.setdefault(layer, {})[part] = name
    return [_Layer(name, parts) for name, parts in layers.items()]


def _fits(layer: _Layer, ours: _Layer, recorded: Shapes, tensors: NetworkTensors) -> bool:
    missing = ours.tensors.keys() - layer.tensors.keys()
    if layer.tensors.keys() - ours.tensors.keys() or any(
        ours.tensors[role] not in tensors.buffers for role in missing
    ):
        return False
    for role, there in layer.tensors.items():
        name, shape = ours.tensors[role], recorded[there]
        shapes = [shape]
        if _split(there)[1] in KERNELS:
            turns = [one for one in tensors.kernels.get(name, ()) if len(one) == len(shape)]
            shapes = [tuple(shape[axis] for axis in one) for one in turns]
        if tensors.shapes[name] not in shapes:
            return False
    return True


def _split(name: str) -> tuple[str, str]:
    """Return the layer and the last part of a name.

    >>> _split("model/dense_1/kernel:0"), _split("params.Dense_0.kernel")
    (('model/dense_1', 'kernel'), ('Dense_0', 'kernel'))
    """
    short = _COLLECTION.sub("", _ENDING.sub("", name))
    layer, _, part = short.rpartition("/" if "/" in short else ".")
    return layer, part


def _numbers(name: str) -> tuple[int, ...]:
    """Return the numbers in a name: none for "dense", 1 for "dense_1"."""
    return tuple(int(number) for number in _NUMBER.findall(name))
