"""MobileNet for small and large images, with group norm."""

from dataclasses import dataclass
from math import gcd
from typing import ClassVar, final

from torch import nn

from overheard.core.task import Task
from overheard.learning.model import Model
from overheard.learning.shapes import image

FIRST = 32
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
"""Channels and stride of each block (Howard et al. 2017, Table 1). The table gives the last
block a stride of 2, yet 7 x 7 pixels before and after it, which a stride of 1 leaves."""

SMALL = 64
"""Pixels a side below which the first convolution leaves the image as large as it is."""

GROUPS = 32
"""Wu and He 2018, Section 4.1: 32 groups do best over a wide range of widths."""

PER_GROUP = 8
"""Channels a group at least, and what widths are multiples of: alone in its group a channel
would lose its strength, and a narrow network has few channels."""


@final
@dataclass(frozen=True, slots=True)
class MobileNet(Model):
    """Thirteen depthwise separable convolutions, and the classes from 1024 alpha means.

    For images of 224 pixels a side as Howard et al. have it. Below 64 pixels the first stride
    is 1 in place of 2, so that 28 or 32 pixels a side become 2 x 2 before the mean. Group norm
    stands in place of batch norm, whose running statistics are no weights; no dropout.

    Args:
        alpha: the width multiplier: every layer has this share of the channels.

    """

    name: ClassVar[str] = "mobilenet"
    source: ClassVar[str] = (
        "Howard et al. 2017, Table 1 and Section 3.3; Wu and He 2018 (group norm)"
    )

    alpha: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a width multiplier that is none."""
        if not 0 < self.alpha <= 1:
            raise ValueError(f"alpha lies above 0 and at most at 1, got {self.alpha}")

    def build(self, task: Task) -> nn.Module:
        """Give the network with fresh weights."""
        channels, height, width = image(task, self.name, smallest=8)
        seen = self._channels(FIRST)
        stride = 1 if min(height, width) < SMALL else 2
        layers = [_convolution(channels, seen, 3, stride)]
        for wide, stride in BLOCKS:
            given = self._channels(wide)
            layers += [
                _convolution(seen, seen, 3, stride, groups=seen),
                _convolution(seen, given, 1, 1),
            ]
            seen = given
        return nn.Sequential(
            *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(seen, task.classes)
        )

    def _channels(self, whole: int) -> int:
        return max(1, round(self.alpha * whole / PER_GROUP)) * PER_GROUP


def _convolution(seen: int, given: int, kernel: int, stride: int, groups: int = 1) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(seen, given, kernel, stride, padding=kernel // 2, groups=groups, bias=False),
        nn.GroupNorm(gcd(GROUPS, given // PER_GROUP), given),
        nn.ReLU(inplace=True),
    )
