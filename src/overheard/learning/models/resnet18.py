"""ResNet-18 for small images, with group norm."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import Tensor, nn

from overheard.core.task import Task
from overheard.learning.input_shapes import image_shape
from overheard.learning.model import Model

GROUPS = 32
"""Wu and He 2018, Section 4.1: 32 groups are best for a wide range of widths."""


@final
@dataclass(frozen=True, slots=True)
class ResNet18(Model):
    """Eight residual blocks, 64 to 512 channels; the last layer is 512 x classes.

    For images of 28, 32 or 48 pixels per side: the first layer is a 3 x 3 convolution of stride
    1 without a pool, as in He et al. for CIFAR-10 (Section 4.2). Group norm replaces batch
    norm, whose running statistics are not parameters, so that updates do not contain them.
    """

    name: ClassVar[str] = "resnet18"
    source: ClassVar[str] = (
        "He et al. 2016, Table 1 and Section 4.2; Wu and He 2018 (group norm)"
    )

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights."""
        channels, _, _ = image_shape(task, self.name, minimum_side=8)
        return nn.Sequential(
            _convolution(channels, 64, stride=1),
            nn.ReLU(inplace=True),
            _Block(64, 64, stride=1),
            _Block(64, 64, stride=1),
            _Block(64, 128, stride=2),
            _Block(128, 128, stride=1),
            _Block(128, 256, stride=2),
            _Block(256, 256, stride=1),
            _Block(256, 512, stride=2),
            _Block(512, 512, stride=1),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(512, task.outputs),
        )


def _convolution(in_channels: int, out_channels: int, stride: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False),
        nn.GroupNorm(GROUPS, out_channels),
    )


class _Block(nn.Module):
    """Two convolutions with a shortcut."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.change = nn.Sequential(
            _convolution(in_channels, out_channels, stride),
            nn.ReLU(inplace=True),
            _convolution(out_channels, out_channels, 1),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, out_channels, 1, stride=stride, bias=False),
                nn.GroupNorm(GROUPS, out_channels),
            )

    def forward(self, maps: Tensor) -> Tensor:
        outputs: Tensor = (self.change(maps) + self.shortcut(maps)).relu_()
        return outputs
