"""MobileNet for small and large images, with group norm."""

from dataclasses import dataclass
from math import gcd
from typing import Annotated, ClassVar, final

from annotated_types import Gt, Le
from torch import nn

from overheard.core.task import Task
from overheard.learning.input_shapes import image_shape
from overheard.learning.model import Model

FIRST_CHANNELS = 32
"""Channels of the first convolution (Howard et al. 2017, Table 1)."""

BLOCKS = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *((512, 1),) * 5,
    (1024, 2),
    (1024, 1),
)
"""Channels and stride of each block (Howard et al. 2017, Table 1). The last block has stride 1
here: the table says 2, but has 7 x 7 pixels before and after it."""

SMALL_SIDE = 64
"""Pixels per side below which the first convolution has stride 1."""

GROUPS = 32
"""Largest number of groups of group norm. Wu and He 2018, Section 4.1: 32 groups are best for
a wide range of widths."""

MIN_CHANNELS_PER_GROUP = 8
"""Fewest channels per group; all widths are multiples of it. Group norm would remove the mean
activation of a channel that is alone in its group."""


@final
@dataclass(frozen=True, slots=True)
class MobileNet(Model):
    """Thirteen depthwise separable convolutions, global average pooling, a linear layer.

    For images of 224 pixels per side it is the network of Howard et al. Below 64 pixels the
    first stride is 1 instead of 2, so that 28 or 32 pixels per side become 2 x 2 before the
    pooling. Group norm replaces batch norm, whose running statistics are not parameters, so
    that updates do not contain them. There is no dropout.

    Args:
        alpha: width multiplier: every layer has this share of the channels of the full network.

    """

    name: ClassVar[str] = "mobilenet"
    source: ClassVar[str] = (
        "Howard et al. 2017, Table 1 and Section 3.3; Wu and He 2018 (group norm)"
    )

    alpha: Annotated[float, Gt(0), Le(1)] = 1.0

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights."""
        channels, height, width = image_shape(task, self.name, minimum_side=8)
        in_channels = self._channels(FIRST_CHANNELS)
        stride = 1 if min(height, width) < SMALL_SIDE else 2
        layers = [_convolution(channels, in_channels, 3, stride)]
        for full_channels, stride in BLOCKS:
            out_channels = self._channels(full_channels)
            layers += [
                _convolution(in_channels, in_channels, 3, stride, groups=in_channels),
                _convolution(in_channels, out_channels, 1, 1),
            ]
            in_channels = out_channels
        return nn.Sequential(
            *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(in_channels, task.outputs)
        )

    def _channels(self, full_channels: int) -> int:
        return (
            max(1, round(self.alpha * full_channels / MIN_CHANNELS_PER_GROUP))
            * MIN_CHANNELS_PER_GROUP
        )


def _convolution(
    in_channels: int, out_channels: int, kernel: int, stride: int, groups: int = 1
) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(
            in_channels,
            out_channels,
            kernel,
            stride,
            padding=kernel // 2,
            groups=groups,
            bias=False,
        ),
        nn.GroupNorm(gcd(GROUPS, out_channels // MIN_CHANNELS_PER_GROUP), out_channels),
        nn.ReLU(inplace=True),
    )
