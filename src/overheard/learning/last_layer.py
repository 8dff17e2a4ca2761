"""The last linear layer, whose outputs are the logits of the classes."""

from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True, slots=True)
class LastLayer:
    """Names of the last linear layer's parameters; `bias` is None if it has none."""

    weight: str
    bias: str | None


def find_last_layer(model: nn.Module) -> LastLayer:
    """Find the last `nn.Linear`, in the order in which modules were registered.

    >>> find_last_layer(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)))
    LastLayer(weight='2.weight', bias='2.bias')

    Raises:
        ValueError: if the model has no linear layer.

    """
    linear = [
        (name, module)
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear)
    ]
    if not linear:
        raise ValueError(f"{type(model).__name__} has no nn.Linear, so it has no last layer")
    name, module = linear[-1]
    prefix = f"{name}." if name else ""
    return LastLayer(f"{prefix}weight", None if module.bias is None else f"{prefix}bias")
