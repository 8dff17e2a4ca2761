"""The network of Brunner and Montuoro's shift paper for MNIST and Fashion-MNIST."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import nn

from overheard.core.task import Task
from overheard.learning.input_shapes import image_shape
from overheard.learning.model import Model


@final
@dataclass(frozen=True, slots=True)
class ShiftConv(Model):
    """Convolutions of 32 and 64 channels (3 x 3, no padding), a pool and two linear layers.

    It has 1,199,882 parameters on 28 x 28 grey pixels and 10 classes. This matches the paper's
    "1.2M"; the paper names no pool, but without one there would be 4.7 million.
    """

    name: ClassVar[str] = "shift_conv"
    source: ClassVar[str] = (
        "Brunner and Montuoro (data distribution shifts), Section 4, for MNIST"
    )

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights."""
        channels, height, width = image_shape(task, self.name, minimum_side=6)
        pooled = ((height - 4) // 2) * ((width - 4) // 2)
        return nn.Sequential(
            nn.Conv2d(channels, 32, 3),
            nn.ReLU(inplace=True),
            nn.Conv2d(32, 64, 3),
            nn.MaxPool2d(2),
            nn.ReLU(inplace=True),
            nn.Flatten(),
            nn.Linear(64 * pooled, 128),
            nn.ReLU(inplace=True),
            nn.Linear(128, task.outputs),
        )
