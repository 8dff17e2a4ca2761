"""Convolutions of stacked clients as products of neighbourhoods and kernels."""

from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

ALIGNED = 8
"""The numbers that a kernel multiplies at a pixel are filled up with zeros to a multiple of
this. Rows then begin at multiples of 16 bytes, as tensor cores ask for, in bfloat16 too."""


def convolve(
    maps: Float[Tensor, "clients images height width channels"],
    kernels: Float[Tensor, "clients outs channels kernel_height kernel_width"],
    bias: Float[Tensor, "clients outs"] | None,
    padding: tuple[int, int],
) -> Float[Tensor, "clients images out_height out_width outs"]:
    """Convolve the maps of each client with its kernels, with stride 1.

    The products are computed in the dtype of the maps. Neighbourhoods are kept for the
    gradient: they take as many times the memory of the maps as a kernel has pixels.

    Args:
        maps: maps of each client.
        kernels: kernels of each client, in torch's order.
        bias: added to each pixel.
        padding: zeros on each side, of the height and of the width; less than a kernel.

    """
    outputs: Tensor = _Convolve.apply(maps, kernels, bias, padding)  # type: ignore[no-untyped-call]
    return outputs


# Any: torch does not name the type of the context that autograd passes.
@final
class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        maps: Tensor,
        kernels: Tensor,
        bias: Tensor | None,
        padding: tuple[int, int],
    ) -> Tensor:
        found = _neighbourhoods(maps, kernels, padding)
        ctx.save_for_backward(found, kernels)
        ctx.padding = padding
        return _product(found, kernels, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *above: Tensor) -> tuple[Tensor | None, ...]:
        found, kernels = ctx.saved_tensors
        clients, outs, channels, height, width = kernels.shape
        gradients = above[0].contiguous()
        slopes = gradients.flatten(1, 3)  # (clients, pixels, outs)
        product = torch.bmm(slopes.transpose(1, 2), found.flatten(1, 3))
        product = product[:, :, : height * width * channels]
        own = product.reshape(clients, outs, height, width, channels).permute(0, 1, 4, 2, 3)
        bias = slopes.sum(1, dtype=kernels.dtype) if ctx.needs_input_grad[2] else None
        maps = None
        if ctx.needs_input_grad[0]:
            # The turned kernels convolve the gradients, with the rest of a kernel as padding.
            turned = kernels.flip(3, 4).transpose(1, 2)
            rest = height - 1 - ctx.padding[0], width - 1 - ctx.padding[1]
            maps = _product(_neighbourhoods(gradients, turned, rest), turned, None)
        return maps, own.to(kernels.dtype), bias, None


def _neighbourhoods(
    maps: Tensor, kernels: Tensor, padding: tuple[int, int]
) -> Float[Tensor, "clients images out_height out_width numbers"]:
    """Return what a kernel multiplies at each pixel."""
    top, left = padding
    padded = functional.pad(maps, (0, 0, left, left, top, top))
    windows = padded.unfold(2, kernels.shape[3], 1).unfold(3, kernels.shape[4], 1)
    return _aligned(windows.movedim(4, 6).flatten(4))


def _product(
    found: Float[Tensor, "clients images out_height out_width numbers"],
    kernels: Float[Tensor, "clients outs channels kernel_height kernel_width"],
    bias: Float[Tensor, "clients outs"] | None,
) -> Float[Tensor, "clients images out_height out_width outs"]:
    """Multiply neighbourhoods by kernels."""
    factors = _aligned(kernels.permute(0, 1, 3, 4, 2).flatten(2)).to(found.dtype)
    rows, columns = found.flatten(1, 3), factors.transpose(1, 2)
    if bias is None:
        product = torch.bmm(rows, columns)
    else:
        product = torch.baddbmm(bias.to(found.dtype).unsqueeze(1), rows, columns)
    return product.view(*found.shape[:4], len(kernels[0]))


def _aligned(rows: Tensor) -> Tensor:
    """Add zeros to the rows up to a multiple of `ALIGNED` numbers."""
    missing = -rows.shape[-1] % ALIGNED
    return functional.pad(rows, (0, missing)) if missing else rows
