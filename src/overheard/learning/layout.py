"""The order in which the numbers of an image lie in memory."""

import torch
from jaxtyping import Shaped
from torch import Tensor, nn


def channels_last(
    inputs: Shaped[Tensor, "examples ..."],
) -> Shaped[Tensor, "examples ..."]:
    """Bring images to (examples, height, width, channels); other inputs stay as they are.

    Done once before images are cut into batches, instead of once a batch.
    """
    return inputs.permute(0, 2, 3, 1).contiguous() if inputs.dim() == 4 else inputs


def channels_first(
    inputs: Shaped[Tensor, "examples ..."],
) -> Shaped[Tensor, "examples ..."]:
    """Show such images as (examples, channels, height, width) again, without moving a number.

    Convolutions then keep to the order in memory, in which they are faster on a CPU.
    """
    return inputs.permute(0, 3, 1, 2) if inputs.dim() == 4 else inputs


def keep_channels_last(model: nn.Module) -> None:
    """Lay the kernels of the model's convolutions out in that order too.

    The strides are spelled out: where there is one channel, torch takes either order for the
    other, answers in the wrong one, and every function of single numbers after it has to walk
    two orders at once (ReLU's slope then takes 18 times as long).
    """
    for parameter in model.parameters():
        if parameter.dim() == 4:
            _, channels, height, width = parameter.shape
            strides = (channels * height * width, 1, width * channels, channels)
            laid = torch.empty_strided(
                parameter.shape, strides, dtype=parameter.dtype, device=parameter.device
            )
            parameter.data = laid.copy_(parameter.data)
