"""The standard network of dataset distillation."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

from annotated_types import Ge, Le
from torch import nn

from overheard.core.settings import Positive
from overheard.core.task import Task
from overheard.learning.input_shapes import image_shape
from overheard.learning.model import Model

MOST_BLOCKS = 20
"""The most blocks: an image of a million pixels a side has no more."""


@final
@dataclass(frozen=True, slots=True)
class ConvNet(Model):
    """Blocks of convolution, instance norm, ReLU and average pooling, then a linear layer.

    Convolutions are 3 x 3 and pooling is 2 x 2. Instance norm is group norm with one channel
    per group, as in the authors' code.

    Args:
        blocks: number of blocks, each of which halves the pixels per side.
        width: channels of each convolution.

    """

    name: ClassVar[str] = "conv_net"
    source: ClassVar[str] = (
        "Zhao and Bilen 2021 (Dataset Condensation with Differentiable Siamese Augmentation, "
        "ICML), after Gidaris and Komodakis 2018; in FLiP (arXiv 2410.19548), Section VI-A"
    )

    blocks: Annotated[int, Ge(1), Le(MOST_BLOCKS)] = 3
    width: Positive = 128

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights."""
        # Two pixels per side before the last pool: instance norm makes a single pixel 0.
        channels, height, width = image_shape(task, self.name, minimum_side=2**self.blocks)
        layers: list[nn.Module] = []
        for _ in range(self.blocks):
            layers += [
                nn.Conv2d(channels, self.width, 3, padding=1),
                nn.GroupNorm(self.width, self.width),
                nn.ReLU(inplace=True),
                nn.AvgPool2d(2),
            ]
            channels = self.width
        pixels = (height >> self.blocks) * (width >> self.blocks)
        return nn.Sequential(
            *layers, nn.Flatten(), nn.Linear(self.width * pixels, task.outputs)
        )
