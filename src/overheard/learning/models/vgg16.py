"""VGG-16 for small images, with group norm."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import nn

from overheard.core.task import Task
from overheard.learning.input_shapes import image_shape
from overheard.learning.model import Model

GROUPS = 32
"""Wu and He 2018, Section 4.1: 32 groups are best for a wide range of widths."""

STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
"""Channels of the convolutions before each pool (Simonyan and Zisserman 2015, Table 1, D)."""


@final
@dataclass(frozen=True, slots=True)
class Vgg16(Model):
    """Thirteen convolutions, five pools, three linear layers; the last is 4096 x classes.

    For images of 32 or 48 pixels per side, which the pools reduce to one. Group norm follows
    each convolution, because a network this deep hardly learns without normalization. The
    paper's dropout is omitted, so that every engine can train it.
    """

    name: ClassVar[str] = "vgg16"
    source: ClassVar[str] = "Simonyan and Zisserman 2015, Table 1, column D"

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights."""
        in_channels, _, _ = image_shape(task, self.name, minimum_side=32)
        layers: list[nn.Module] = []
        for stage in STAGES:
            for place, out_channels in enumerate(stage, start=1):
                layers += [
                    nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False),
                    nn.GroupNorm(GROUPS, out_channels),
                ]
                # ReLU after the pool: the same bits from a quarter of the numbers.
                layers += [nn.MaxPool2d(2)] if place == len(stage) else []
                layers += [nn.ReLU(inplace=True)]
                in_channels = out_channels
        return nn.Sequential(
            *layers,
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(in_channels, 4096),
            nn.ReLU(inplace=True),
            nn.Linear(4096, 4096),
            nn.ReLU(inplace=True),
            nn.Linear(4096, task.outputs),
        )
