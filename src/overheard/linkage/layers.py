"""The choice of a layer by its depth."""

from collections.abc import Iterable
from typing import Literal

from overheard.core.errors import NeedsError

Layer = int | Literal["all", "last_bias"]
"""Which part of an update is looked at: a layer by its depth, counted from the input as Python
counts (-1 is the last); all of them; or the bias of the last layer alone."""


def tensors_of(layer: Layer, names: Iterable[str]) -> tuple[str, ...]:
    """Names of the tensors of a layer, in the order in which the model has them.

    A layer is a module with weights of its own, so that a normalisation counts as one.

    >>> tensors_of(-1, ("embed.weight", "lstm.weight_ih_l0", "out.weight", "out.bias"))
    ('out.weight', 'out.bias')

    Args:
        layer: which.
        names: of all tensors of the model.

    Raises:
        NeedsError: if the model has no such layer.

    """
    layers: dict[str, list[str]] = {}
    for name in names:
        layers.setdefault(name.rpartition(".")[0], []).append(name)
    in_order = list(layers.values())
    if layer == "all":
        return tuple(name for own in in_order for name in own)
    if layer == "last_bias":
        biases = tuple(name for name in in_order[-1] if name.rpartition(".")[2] == "bias")
        if not biases:
            raise NeedsError(
                f"layer = 'last_bias' needs a last layer with a bias, and {in_order[-1]} are "
                "all of its weights: choose layer = -1"
            )
        return biases
    if not -len(in_order) <= layer < len(in_order):
        told = ", ".join(f"{depth} = {name!r}" for depth, name in enumerate(layers))
        raise NeedsError(f"layer = {layer} needs a model with one there: choose one of {told}")
    return tuple(in_order[layer])


def telling_layers(names: Iterable[str]) -> tuple[Layer, ...]:
    """Those that are read where none is chosen: the last bias, the last layer, all of them.

    The last layer's bias tells labels, the last layer what goes with them, and all of them what
    inputs look like. A model whose last layer has no bias is read by the two others.

    >>> telling_layers(("embed.weight", "out.weight", "out.bias"))
    ('last_bias', -1, 'all')
    >>> telling_layers(("embed.weight", "out.weight"))
    (-1, 'all')
    """
    last = tensors_of(-1, names)
    has_bias = any(name.rpartition(".")[2] == "bias" for name in last)
    return ("last_bias", -1, "all") if has_bias else (-1, "all")
