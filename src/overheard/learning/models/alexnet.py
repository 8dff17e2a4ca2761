"""AlexNet for small images."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import nn

from overheard.core.task import Task
from overheard.learning.input_shapes import image_shape
from overheard.learning.model import Model


@final
@dataclass(frozen=True, slots=True)
class AlexNet(Model):
    """AlexNet with five convolutions, three pools and one linear layer.

    This is the version of dataset distillation for 32 x 32 pixels. Kernels, strides and
    channels of Krizhevsky et al. are smaller, and their two wide layers and dropout are
    omitted. The FLiP paper names AlexNet without details.
    """

    name: ClassVar[str] = "alexnet"
    source: ClassVar[str] = (
        "Krizhevsky et al. 2012, as Zhao et al. 2021 (Dataset Condensation with Gradient "
        "Matching, ICLR) have it; in FLiP (arXiv 2410.19548), Section VI-A"
    )

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights."""
        channels, height, width = image_shape(task, self.name, minimum_side=8)
        pixels = (height // 8) * (width // 8)
        return nn.Sequential(
            nn.Conv2d(channels, 128, 5, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(128, 192, 5, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(192, 256, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(256, 192, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(192, 192, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(192 * pixels, task.outputs),
        )
