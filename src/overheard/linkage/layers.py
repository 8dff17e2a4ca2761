"""Selection of a model's layer by its depth."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator

from overheard.core.errors import NeedsError

Layer = int | Literal["all", "last_bias"]
"""The part of an update that is used: a layer by its depth from the input, as a Python index
(-1 is the last layer); all layers; or the bias of the last layer alone."""


def _check_different(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    if not 0 < len(set(layers)) == len(layers):
        raise ValueError(f"must name one part or more, without repetition, got {layers}")
    return layers


DifferentLayers = Annotated[tuple[Layer, ...], AfterValidator(_check_different)]
"""Several parts of an update, none of them twice."""


def layer_tensors(layer: Layer, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of a layer's tensors, in the model's order.

    A layer is a module with its own weights, so a normalisation layer counts.

    >>> layer_tensors(-1, ("embed.weight", "lstm.weight_ih_l0", "out.weight", "out.bias"))
    ('out.weight', 'out.bias')

    Args:
        layer: the layer.
        names: names of all tensors of the model.

    Raises:
        NeedsError: if the model has no such layer.

    """
    layers: dict[str, list[str]] = {}
    for name in names:
        layers.setdefault(name.rpartition(".")[0], []).append(name)
    in_order = list(layers.values())
    if layer == "all":
        return tuple(name for tensors in in_order for name in tensors)
    if layer == "last_bias":
        biases = tuple(name for name in in_order[-1] if name.rpartition(".")[2] == "bias")
        if not biases:
            raise NeedsError(
                "layer = 'last_bias' needs a last layer with a bias, but its only weights are "
                f"{in_order[-1]}: choose layer = -1"
            )
        return biases
    if not -len(in_order) <= layer < len(in_order):
        choices = ", ".join(f"{depth} = {name!r}" for depth, name in enumerate(layers))
        raise NeedsError(f"the model has no layer {layer}: choose one of {choices}")
    return tuple(in_order[layer])


def default_layers(names: Iterable[str]) -> tuple[Layer, ...]:
    """Return the layers that are used by default: the last bias, the last layer, all layers.

    The last bias depends mostly on the labels, the last layer also on their features, and all
    layers together on the inputs. Without a last bias the two others are used.

    >>> default_layers(("embed.weight", "out.weight", "out.bias"))
    ('last_bias', -1, 'all')
    >>> default_layers(("embed.weight", "out.weight"))
    (-1, 'all')
    """
    last = layer_tensors(-1, names)
    has_bias = any(name.rpartition(".")[2] == "bias" for name in last)
    return ("last_bias", -1, "all") if has_bias else (-1, "all")
