"""Memory layout of images and convolution kernels."""

import torch
from jaxtyping import Shaped
from torch import Tensor, nn


def to_channels_last(
    inputs: Shaped[Tensor, "examples ..."],
) -> Shaped[Tensor, "examples ..."]:
    """Permute images to (examples, height, width, channels); return other inputs unchanged.

    Callers do this once before they split images into batches, not once per batch.
    """
    return inputs.permute(0, 2, 3, 1).contiguous() if inputs.dim() == 4 else inputs


def to_channels_first(
    inputs: Shaped[Tensor, "examples ..."],
) -> Shaped[Tensor, "examples ..."]:
    """View such images as (examples, channels, height, width), without copying.

    Convolutions then run in channels-last memory order, which is faster on a CPU.
    """
    return inputs.permute(0, 3, 1, 2) if inputs.dim() == 4 else inputs


def store_kernels_channels_last(model: nn.Module) -> None:
    """Store the model's convolution kernels in channels-last order too.

    The strides are set explicitly. With one channel, torch cannot distinguish the two orders
    and returns the wrong one. Elementwise functions then mix two memory orders (the backward
    pass of ReLU takes 18 times as long).
    """
    for parameter in model.parameters():
        if parameter.dim() == 4:
            _, channels, height, width = parameter.shape
            strides = (channels * height * width, 1, width * channels, channels)
            stored = torch.empty_strided(
                parameter.shape, strides, dtype=parameter.dtype, device=parameter.device
            )
            parameter.data = stored.copy_(parameter.data)
