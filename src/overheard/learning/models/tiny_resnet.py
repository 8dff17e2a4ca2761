"""A convolution and one residual block."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import Tensor, nn
from torch.nn.functional import relu

from overheard.core.task import Task
from overheard.learning.input_shapes import image_shape
from overheard.learning.model import Model

WIDTH = 64
"""Channels of the block, as published."""

POOLED_SIDE = 4
"""Pixels per side to which the block's output is averaged."""


@final
@dataclass(frozen=True, slots=True)
class TinyResnet(Model):
    """A 3 x 3 convolution, a residual block of two more, average pooling, a linear layer.

    The paper names the block's kernel and its 64 channels. The width of the first convolution
    and the pooling to 4 x 4 are this project's choices. There is no norm: batch norm has
    running statistics, which updates do not contain, and is meaningless for a batch of one
    example.
    """

    name: ClassVar[str] = "tiny_resnet"
    source: ClassVar[str] = "FLiP (arXiv 2410.19548), Section VI-A; block: He et al. 2016"

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights."""
        channels, height, width = image_shape(task, self.name, minimum_side=POOLED_SIDE)
        tall, wide = height // POOLED_SIDE, width // POOLED_SIDE
        pixels = (height // tall) * (width // wide)
        return nn.Sequential(
            nn.Conv2d(channels, WIDTH, 3, padding=1),
            nn.ReLU(inplace=True),
            Block(),
            nn.AvgPool2d((tall, wide)),
            nn.Flatten(),
            nn.Linear(WIDTH * pixels, task.outputs),
        )


@final
class Block(nn.Module):
    """Two convolutions with a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.second = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)

    def forward(self, inputs: Tensor) -> Tensor:
        """Add the output of the convolutions to the inputs."""
        return relu(inputs + self.second(relu(self.first(inputs))))
