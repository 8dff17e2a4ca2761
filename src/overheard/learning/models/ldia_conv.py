"""The network of LDIA for MNIST: two 5 x 5 convolutions with pools, and one linear layer."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import nn

from overheard.core.settings import Positive
from overheard.core.task import Task
from overheard.learning.input_shapes import image_shape
from overheard.learning.model import Model

KERNEL = 5


@final
@dataclass(frozen=True, slots=True)
class LdiaConv(Model):
    """Convolution, pool, convolution, pool without padding, and a linear layer.

    It has 31,594 parameters on 28 x 28 grey pixels and 10 classes; the last layer has 512
    inputs. If one pixel remains after the second convolution (images of 14 x 14), the second
    pool is omitted. Each activation follows its pool, as a monotone function and a maximum
    commute.

    Args:
        channels: channels of each convolution.

    """

    name: ClassVar[str] = "ldia_conv"
    source: ClassVar[str] = "Gu and Bai 2023 (LDIA), the network for MNIST, from their code"

    channels: Positive = 32

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights."""
        channels, height, width = image_shape(task, self.name, minimum_side=14)
        sides = [((side - KERNEL + 1) // 2) - KERNEL + 1 for side in (height, width)]
        pooled = min(sides) >= 2
        left = [side // 2 if pooled else side for side in sides]
        return nn.Sequential(
            nn.Conv2d(channels, self.channels, KERNEL),
            nn.MaxPool2d(2),
            nn.ReLU(inplace=True),
            nn.Conv2d(self.channels, self.channels, KERNEL),
            *((nn.MaxPool2d(2),) if pooled else ()),
            nn.ReLU(inplace=True),
            nn.Flatten(),
            nn.Linear(self.channels * left[0] * left[1], task.outputs),
        )
