"""Convolutions of stacked clients as products of neighbourhoods, by torch's own operations."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional


def convolve(
    maps: Float[Tensor, "clients images height width channels"],
    kernels: Float[Tensor, "clients outs kernel_height kernel_width channels"],
    bias: Float[Tensor, "clients outs"] | None,
    padding: tuple[int, int],
) -> Float[Tensor, "clients images out_height out_width outs"]:
    """Convolve the maps of each client with its kernels, with stride 1.

    Args:
        maps: maps of each client.
        kernels: kernels of each client.
        bias: added to each pixel.
        padding: zeros on each side, of the height and of the width.

    """
    clients, outs, height, width, _ = kernels.shape
    found = _neighbourhoods(maps, (height, width), padding)
    factors = kernels.reshape(clients, outs, -1).transpose(1, 2)
    product = torch.bmm(found.flatten(1, 3), factors)  # (clients, pixels, outs)
    if bias is not None:
        product += bias.unsqueeze(1)
    return product.view(*found.shape[:4], outs)


def kernel_gradients(
    maps: Float[Tensor, "clients images height width channels"],
    gradients: Float[Tensor, "clients images out_height out_width outs"],
    kernel_size: tuple[int, int],
    padding: tuple[int, int],
) -> Float[Tensor, "clients outs kernel_height kernel_width channels"]:
    """Return the gradients of kernels, summed over pixels, given those of the outputs."""
    found = _neighbourhoods(maps, kernel_size, padding).flatten(1, 3)
    product = torch.bmm(gradients.flatten(1, 3).transpose(1, 2), found)
    return product.view(*product.shape[:2], *kernel_size, maps.shape[4])


def _neighbourhoods(
    maps: Tensor, kernel_size: tuple[int, int], padding: tuple[int, int]
) -> Float[Tensor, "clients images out_height out_width numbers"]:
    """Return what a kernel multiplies at each pixel, in the order of the kernel."""
    top, left = padding
    padded = functional.pad(maps, (0, 0, left, left, top, top))
    windows = padded.unfold(2, kernel_size[0], 1).unfold(3, kernel_size[1], 1)
    return windows.movedim(4, 6).flatten(4)
