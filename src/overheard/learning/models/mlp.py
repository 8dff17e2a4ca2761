"""Fully connected layers, one after the other."""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, final

from torch import nn

from overheard.core.task import Task
from overheard.learning.activation import ActivationName, build_activation
from overheard.learning.input_shapes import input_size
from overheard.learning.model import Model


@final
@dataclass(frozen=True, slots=True)
class Mlp(Model):
    """Fully connected layers on the flattened input.

    Args:
        hidden: units of each hidden layer, first to last.
        activation: activation between two layers.

    """

    name: ClassVar[str] = "mlp"
    source: ClassVar[str] = "Rosenblatt 1962; Rumelhart et al. 1986"

    hidden: tuple[int, ...] = (64,)
    activation: ActivationName = "relu"

    def __post_init__(self) -> None:
        """Refuse a layer without units."""
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"hidden layers have 1 unit or more each, got {self.hidden}")

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights."""
        widths = (input_size(task, self.name), *self.hidden)
        layers: list[nn.Module] = [nn.Flatten()]
        for wide, narrow in pairwise(widths):
            layers += [nn.Linear(wide, narrow), build_activation(self.activation)]
        return nn.Sequential(*layers, nn.Linear(widths[-1], task.outputs))
