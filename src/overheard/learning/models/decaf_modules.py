"""Decaf's network for CIFAR-10, skin lesions and faces: modules, then two linear layers."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

from annotated_types import Ge, Le
from torch import nn

from overheard.core.settings import Positive
from overheard.core.task import Task
from overheard.learning.input_shapes import image_shape
from overheard.learning.model import Model

MOST_MODULES = 20
"""The most modules: an image of a million pixels a side has no more."""


@final
@dataclass(frozen=True, slots=True)
class DecafModules(Model):
    """Modules of one 3 x 3 convolution and one 2 x 2 max-pool each, then two linear layers.

    The paper has three modules for CIFAR-10 and SkinCancer and four for FER-2013. It does not
    give the channels; here they double from module to module. Convolutions have padding, so
    each module halves the size of the image.

    Args:
        modules: number of modules.
        channels: channels of the first convolution.
        hidden: inputs of the last layer.

    """

    name: ClassVar[str] = "decaf_modules"
    source: ClassVar[str] = "Dai et al. 2024 (Decaf), Table II; with channels of this project"

    modules: Annotated[int, Ge(1), Le(MOST_MODULES)] = 3
    channels: Positive = 16
    hidden: Positive = 50

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights."""
        in_channels, height, width = image_shape(task, self.name, minimum_side=2**self.modules)
        layers: list[nn.Module] = []
        for depth in range(self.modules):
            out_channels = self.channels * 2**depth
            layers += [
                nn.Conv2d(in_channels, out_channels, 3, padding=1),
                nn.MaxPool2d(2),
                nn.ReLU(inplace=True),
            ]
            in_channels, height, width = out_channels, height // 2, width // 2
        return nn.Sequential(
            *layers,
            nn.Flatten(),
            nn.Linear(in_channels * height * width, self.hidden),
            nn.ReLU(inplace=True),
            nn.Linear(self.hidden, task.outputs),
        )
