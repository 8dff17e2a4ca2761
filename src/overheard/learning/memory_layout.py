"""Memory layout of images and convolution kernels."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from overheard.core.recipe import Precision


@final
@dataclass(frozen=True, slots=True)
class MemoryOrder:
    """The order in memory of the images and convolution kernels of a network.

    Args:
        are_channels_last: whether the channels of a pixel are next to each other.

    """

    are_channels_last: bool

    @classmethod
    def on(cls, device: torch.device, precision: Precision = "float32") -> "MemoryOrder":
        """Return the order in which convolutions with factors of this precision are fastest.

        On a GPU tensor cores, which round factors, read pixels with all their channels. Other
        convolutions there are made for images channel by channel; this project has measured
        neither.
        """
        return cls(device.type == "cpu" or precision != "float32")

    def stored(self, inputs: Shaped[Tensor, "examples ..."]) -> Shaped[Tensor, "examples ..."]:
        """Return images as batches are split from them, and other inputs unchanged.

        Their axes are (examples, height, width, channels) if channels are last. Callers do this
        once before they split images into batches, not once per batch.
        """
        is_permuted = self.are_channels_last and inputs.dim() == 4
        return inputs.permute(0, 2, 3, 1).contiguous() if is_permuted else inputs

    def read(self, stored: Shaped[Tensor, "examples ..."]) -> Shaped[Tensor, "examples ..."]:
        """View such images as (examples, channels, height, width), without copying."""
        is_permuted = self.are_channels_last and stored.dim() == 4
        return stored.permute(0, 3, 1, 2) if is_permuted else stored

    def store_kernels(self, model: nn.Module) -> None:
        """Store the model's convolution kernels in this order too, if channels are last.

        The strides are set explicitly. With one channel, torch cannot distinguish the two
        orders and returns the wrong one. Elementwise functions then mix two memory orders (the
        backward pass of ReLU takes 18 times as long).
        """
        kernels = [one for one in model.parameters() if one.dim() == 4]
        for kernel in kernels if self.are_channels_last else ():
            _, channels, height, width = kernel.shape
            strides = (channels * height * width, 1, width * channels, channels)
            stored = torch.empty_strided(
                kernel.shape, strides, dtype=kernel.dtype, device=kernel.device
            )
            kernel.data = stored.copy_(kernel.data)
