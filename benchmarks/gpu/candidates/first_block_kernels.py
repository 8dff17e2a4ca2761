"""The first convolution of stacked clients with the instance norm after it, as Triton kernels.

The first convolution has few inputs and many outputs. Its maps are computed in registers, and
again for the gradient: they are never in memory, where they would take the most of all maps.
"""

from dataclasses import dataclass
from typing import Any, final

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from overheard.learning.engines.instance_norm_kernels import (
    _before_norm,
    _known_only,
    _load,
    _load_shares,
    _normed,
    _squares,
    _store_pool,
)

MOST_INPUTS = 32
"""The most numbers that a kernel multiplies at each pixel."""

CHANNELS = 16
"""Channels of the maps that a program computes, for all pixels of an image."""

WARPS = 8
"""Groups of 32 threads of a program."""


@final
@dataclass(frozen=True, slots=True)
class FirstBlock:
    """A convolution without bias, an instance norm, ReLU and a pool of 2 x 2 pixels.

    Args:
        padding: zeros on each side, of the height and of the width.
        epsilon: added to each variance.

    """

    padding: tuple[int, int]
    epsilon: float

    def run(
        self,
        images: Float[Tensor, "clients images height width channels"],
        kernels: Float[Tensor, "clients outs channels kernel_height kernel_width"],
        weight: Float[Tensor, "clients outs"],
        bias: Float[Tensor, "clients outs"],
    ) -> Float[Tensor, "clients images out_height out_width outs"]:
        """Run the block for each client; gradients of the images are not computed."""
        outputs: Tensor = _Run.apply(images, kernels, weight, bias, self)
        return outputs


# Any: torch does not name the type of the context that autograd passes.
@final
class _Run(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        kernels: Tensor,
        weight: Tensor,
        bias: Tensor,
        block: FirstBlock,
    ) -> Tensor:
        images, weight, bias = images.contiguous(), weight.contiguous(), bias.contiguous()
        own = kernels.permute(0, 1, 3, 4, 2).to(images.dtype).contiguous()
        sizes, settings = _launch(images, kernels, block)
        height, width = sizes["height"], sizes["width"]
        shape = height // 2, width // 2
        clients, count, outs = len(images), images.shape[1], kernels.shape[1]
        outputs = images.new_empty(clients, count, *shape, outs)
        means, inverses = images.new_empty(
            2, clients * count, outs, dtype=torch.float32
        ).unbind()
        grid = clients * count, triton.cdiv(outs, CHANNELS)
        _run[grid](
            images,
            own,
            weight,
            bias,
            outputs,
            means,
            inverses,
            epsilon=block.epsilon,
            **sizes,
            **settings,
        )
        ctx.save_for_backward(images, own, weight, bias, means, inverses)
        ctx.launch = grid, sizes, settings
        ctx.kind = kernels.dtype
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        images, own, weight, bias, means, inverses = ctx.saved_tensors
        grid, sizes, settings = ctx.launch
        clients, count, outs = len(images), images.shape[1], own.shape[1]
        inputs = own[0, 0].numel()
        sums = images.new_empty(clients, count, outs, inputs + 2, dtype=torch.float32)
        _pass_back[grid](
            images,
            own,
            gradients[0].contiguous(),
            weight,
            bias,
            means,
            inverses,
            sums,
            **sizes,
            **settings,
        )
        total = sums.sum(1).to(ctx.kind)  # (clients, outs, inputs + 2)
        kernels = total[:, :, :inputs].unflatten(2, own.shape[2:]).permute(0, 1, 4, 2, 3)
        return None, kernels, total[:, :, inputs], total[:, :, inputs + 1], None


def _launch(
    images: Tensor, kernels: Tensor, block: FirstBlock
) -> tuple[dict[str, int], dict[str, Any]]:
    """Return the sizes and the settings of a kernel."""
    _, count, in_height, in_width, channels = images.shape
    _, outs, _, kernel_height, kernel_width = kernels.shape
    height = in_height + 2 * block.padding[0] - kernel_height + 1
    width = in_width + 2 * block.padding[1] - kernel_width + 1
    inputs = kernel_height * kernel_width * channels
    quarter = triton.next_power_of_2(((height + 1) // 2) * ((width + 1) // 2))
    sizes = {
        "count": count,
        "in_height": in_height,
        "in_width": in_width,
        "height": height,
        "width": width,
        "outs": outs,
        "top": block.padding[0],
        "left": block.padding[1],
    }
    return sizes, {
        "channels": channels,
        "inputs": inputs,
        "kernel_width": kernel_width,
        "quarter": quarter,
        "block": CHANNELS,
        "num_warps": WARPS,
        "num_stages": 1,
    }


@triton.jit
def _convolved(images, kernels, channel, is_channel, sizes, inputs: tl.constexpr):
    """Return the maps of these channels, also at pixels beyond them."""
    one = tl.zeros([sizes[0].shape[0], channel.shape[0]], dtype=tl.float32)
    two, three, four = one, one, one
    for place in range(inputs):
        weights = _load(kernels, channel * inputs + place, is_channel)
        first, second, third, fourth = _near(images, place, sizes)
        one += first * weights
        two += second * weights
        three += third * weights
        four += fourth * weights
    return one, two, three, four


@triton.jit
def _near(images, place, sizes):
    """Return what one number of a kernel multiplies at the pixels, as columns."""
    cell, width, in_height, in_width, top, left, channels, kernel_width = sizes
    tap = place // channels
    half = (width + 1) // 2
    y = cell // half * 2 + tap // kernel_width - top
    x = cell % half * 2 + tap % kernel_width - left
    into = images + (y * in_width + x) * channels + place % channels
    is_top, is_bottom = (y >= 0) & (y < in_height), (y >= -1) & (y + 1 < in_height)
    is_left, is_right = (x >= 0) & (x < in_width), (x >= -1) & (x + 1 < in_width)
    below = in_width * channels
    return (
        _load(into, 0, is_top & is_left)[:, None],
        _load(into, channels, is_top & is_right)[:, None],
        _load(into, below, is_bottom & is_left)[:, None],
        _load(into, below + channels, is_bottom & is_right)[:, None],
    )


@triton.jit(do_not_specialize=["count", "in_height", "in_width", "height", "width"])
def _run(
    images,
    kernels,
    weight,
    bias,
    outputs,
    means,
    inverses,
    count,
    in_height,
    in_width,
    height,
    width,
    outs,
    top,
    left,
    epsilon,
    channels: tl.constexpr,
    inputs: tl.constexpr,
    kernel_width: tl.constexpr,
    quarter: tl.constexpr,
    block: tl.constexpr,
):
    image = tl.program_id(0).to(tl.int64)
    client = image // count
    _, pooled, channel, known = _squares(height, width, outs, quarter, block)
    is_channel = channel < outs
    images += image * in_height * in_width * channels
    kernels += client * outs * inputs
    cell = tl.arange(0, quarter)
    sizes = cell, width, in_height, in_width, top, left, channels, kernel_width
    one, two, three, four = _known_only(
        known, *_convolved(images, kernels, channel, is_channel, sizes, inputs)
    )
    pixels = height * width
    one, two, three, four, mean, inverse = _normed(
        known, pixels, epsilon, one, two, three, four
    )
    own, shared = image * outs + channel, client * outs + channel
    tl.store(means + own, mean, mask=is_channel)
    tl.store(inverses + own, inverse, mask=is_channel)
    factor, shift = _load(weight, shared, is_channel), _load(bias, shared, is_channel)
    _store_pool(
        outputs, image, pooled, height, width, outs, known, factor, shift, one, two, three, four
    )


@triton.jit(do_not_specialize=["count", "in_height", "in_width", "height", "width"])
def _pass_back(
    images,
    kernels,
    above,
    weight,
    bias,
    means,
    inverses,
    sums,
    count,
    in_height,
    in_width,
    height,
    width,
    outs,
    top,
    left,
    channels: tl.constexpr,
    inputs: tl.constexpr,
    kernel_width: tl.constexpr,
    quarter: tl.constexpr,
    block: tl.constexpr,
):
    image = tl.program_id(0).to(tl.int64)
    client = image // count
    _, pooled, channel, known = _squares(height, width, outs, quarter, block)
    is_channel = channel < outs
    images += image * in_height * in_width * channels
    kernels += client * outs * inputs
    cell = tl.arange(0, quarter)
    sizes = cell, width, in_height, in_width, top, left, channels, kernel_width
    one, two, three, four = _convolved(images, kernels, channel, is_channel, sizes, inputs)
    own, shared = image * outs + channel, client * outs + channel
    mean, inverse = _load(means, own, is_channel), _load(inverses, own, is_channel)
    factor, shift = _load(weight, shared, is_channel), _load(bias, shared, is_channel)
    one, two = (one - mean) * inverse, (two - mean) * inverse
    three, four = (three - mean) * inverse, (four - mean) * inverse
    share, pixels = (
        _load_shares(above, image, pooled, height, width, outs, known),
        height * width,
    )
    one, two, three, four, product, total = _before_norm(
        pixels, factor, shift, inverse, share, one, two, three, four
    )
    one, two, three, four = _known_only(known, one, two, three, four)
    sums += own * (inputs + 2)
    tl.store(sums + inputs, product, mask=is_channel)
    tl.store(sums + inputs + 1, total, mask=is_channel)
    for term in range(inputs):
        first, second, third, fourth = _near(images, term, sizes)
        gradient = tl.sum(one * first + two * second + three * third + four * fourth, 0)
        tl.store(sums + term, gradient, mask=is_channel)
