"""Activation functions that plans can name."""

from typing import Literal

from torch import nn

ActivationName = Literal["relu", "leaky_relu", "tanh"]


def build_activation(name: ActivationName) -> nn.Module:
    """Return the activation module of this name; in place where torch offers that."""
    if name == "relu":
        return nn.ReLU(inplace=True)
    if name == "leaky_relu":
        return nn.LeakyReLU(inplace=True)
    return nn.Tanh()
