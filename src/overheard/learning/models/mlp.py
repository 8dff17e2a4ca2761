"""Fully connected layers, one after the other."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar, final

from annotated_types import MinLen
from torch import nn

from overheard.core.settings import Positive
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

    hidden: Annotated[tuple[Positive, ...], MinLen(1)] = (64,)
    activation: ActivationName = "relu"

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights."""
        widths = (input_size(task, self.name), *self.hidden)
        layers: list[nn.Module] = [nn.Flatten()]
        for wide, narrow in pairwise(widths):
            layers += [nn.Linear(wide, narrow), build_activation(self.activation)]
        return nn.Sequential(*layers, nn.Linear(widths[-1], task.outputs))
