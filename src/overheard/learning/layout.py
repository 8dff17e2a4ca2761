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
    """Lay the kernels of the model's convolutions out in that order too."""
    for parameter in model.parameters():
        if parameter.dim() == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
