"""The bend between two layers."""

from typing import Literal

from torch import nn

ActivationName = Literal["relu", "leaky_relu", "tanh"]


def activation(name: ActivationName) -> nn.Module:
    """Give the module of this name; it overwrites its input where torch allows that."""
    if name == "relu":
        return nn.ReLU(inplace=True)
    if name == "leaky_relu":
        return nn.LeakyReLU(inplace=True)
    return nn.Tanh()
