"""Decaf's network for MNIST and Fashion-MNIST: two convolutions, a pool, two linear layers."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import nn

from overheard.core.settings import Positive
from overheard.core.task import Task
from overheard.learning.activation import ActivationName, build_activation
from overheard.learning.input_shapes import image_shape
from overheard.learning.model import Model


@final
@dataclass(frozen=True, slots=True)
class DecafConv2(Model):
    """Two 3 x 3 convolutions without padding, one 2 x 2 max-pool, two linear layers.

    It has 146,480 parameters on 28 x 28 grey pixels and 10 classes. The second activation
    follows the pool. A monotone function and a maximum commute bit for bit, and a quarter of
    the numbers remains for the activation.

    Args:
        first: channels of the first convolution.
        second: channels of the second convolution.
        hidden: inputs of the last layer (the paper's Figure 8 varies it).
        activation: activation between two layers.

    """

    name: ClassVar[str] = "decaf_conv2"
    source: ClassVar[str] = "Dai et al. 2024 (Decaf), Table II; with channels of this project"

    first: Positive = 10
    second: Positive = 20
    hidden: Positive = 50
    activation: ActivationName = "relu"

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights."""
        channels, height, width = image_shape(task, self.name, minimum_side=6)
        pooled = ((height - 4) // 2) * ((width - 4) // 2)
        return nn.Sequential(
            nn.Conv2d(channels, self.first, 3),
            build_activation(self.activation),
            nn.Conv2d(self.first, self.second, 3),
            nn.MaxPool2d(2),
            build_activation(self.activation),
            nn.Flatten(),
            nn.Linear(self.second * pooled, self.hidden),
            build_activation(self.activation),
            nn.Linear(self.hidden, task.outputs),
        )
