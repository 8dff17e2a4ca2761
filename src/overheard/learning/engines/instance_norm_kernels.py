"""Instance norm of stacked clients, with the ReLU and the pool after it, as Triton kernels.

Torch reads and writes all maps for each of these layers and for each of their gradients. One
program reads the pixels of an image once, keeps them in registers, and writes the result.
"""

from typing import Any, final

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

MOST_PIXELS = 1024
"""The most pixels of an image, so that a program's registers hold some channels of it."""

NUMBERS = 2048
"""Numbers of each quarter of an image that a program holds: 8 for each of 256 threads."""


def normalise_and_pool(
    maps: Float[Tensor, "clients images height width channels"],
    weight: Float[Tensor, "clients channels"],
    bias: Float[Tensor, "clients channels"],
    epsilon: float,
    has_relu: bool,
    has_pool: bool,
) -> Float[Tensor, "clients images out_height out_width channels"]:
    """Normalise each channel of each image, then apply ReLU and a 2 x 2 average pool.

    Means and sums are in float32, also of maps in bfloat16. An odd last row or column counts in
    the norm, not in the pool.

    Args:
        maps: maps of at most `MOST_PIXELS` pixels.
        weight: factor of each channel.
        bias: what is added to each channel.
        epsilon: added to each variance.
        has_relu: whether ReLU follows.
        has_pool: whether the average pool follows.

    """
    outputs: Tensor = _Block.apply(maps, weight, bias, epsilon, has_relu, has_pool)
    return outputs


# Any: torch does not name the type of the context that autograd passes.
@final
class _Block(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        maps: Tensor,
        weight: Tensor,
        bias: Tensor,
        epsilon: float,
        has_relu: bool,
        has_pool: bool,
    ) -> Tensor:
        clients, images, height, width, channels = maps.shape
        maps, weight, bias = maps.contiguous(), weight.contiguous(), bias.contiguous()
        shape = (height // 2, width // 2) if has_pool else (height, width)
        outputs = maps.new_empty(clients, images, *shape, channels)
        means, inverses = maps.new_empty(
            2, clients * images, channels, dtype=torch.float32
        ).unbind()
        grid, settings = _launch(maps, has_relu, has_pool)
        _normalise[grid](
            maps,
            weight,
            bias,
            outputs,
            means,
            inverses,
            images,
            height,
            width,
            channels,
            epsilon,
            **settings,
        )
        ctx.save_for_backward(maps, weight, bias, means, inverses)
        ctx.has_relu, ctx.has_pool = has_relu, has_pool
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        maps, weight, bias, means, inverses = ctx.saved_tensors
        clients, images, height, width, channels = maps.shape
        changes = torch.empty_like(maps)
        products, totals = torch.empty_like(means), torch.empty_like(means)
        grid, settings = _launch(maps, ctx.has_relu, ctx.has_pool)
        _pass_back[grid](
            maps,
            gradients[0].contiguous(),
            weight,
            bias,
            means,
            inverses,
            changes,
            products,
            totals,
            images,
            height,
            width,
            channels,
            **settings,
        )
        sums = torch.stack((products, totals)).view(2, clients, images, channels).sum(2)
        return changes, sums[0].to(weight.dtype), sums[1].to(bias.dtype), None, None, None


def _launch(
    maps: Tensor, has_relu: bool, has_pool: bool
) -> tuple[tuple[int, int], dict[str, Any]]:
    """Return the grid of programs and the settings of a kernel."""
    clients, images, height, width, channels = maps.shape
    quarter = triton.next_power_of_2(((height + 1) // 2) * ((width + 1) // 2))
    block = max(8, min(64, NUMBERS // quarter, triton.next_power_of_2(channels)))
    grid = clients * images, triton.cdiv(channels, block)
    return grid, {
        "has_relu": has_relu,
        "has_pool": has_pool,
        "quarter": quarter,
        "block": block,
        "num_warps": 8 if quarter * block >= NUMBERS else 4,
    }


# A program holds the top left, top right, bottom left and bottom right pixels of all squares of
# 2 x 2 pixels, which the pool merges.


@triton.jit
def _squares(height, width, channels, quarter: tl.constexpr, block: tl.constexpr):
    """Return the places of the first pixels and of the pool, the channels, and what exists."""
    cell = tl.arange(0, quarter)
    half = (width + 1) // 2
    row, column = cell // half, cell % half
    channel = tl.program_id(1) * block + tl.arange(0, block)
    place = (row * 2 * width + column * 2) * channels
    pooled = (row * (width // 2) + column) * channels
    is_top = (row * 2 < height)[:, None] & (channel < channels)[None, :]
    is_bottom = is_top & (row * 2 + 1 < height)[:, None]
    is_right = (column * 2 + 1 < width)[:, None]
    return (
        place[:, None] + channel,
        pooled[:, None] + channel,
        channel,
        is_top,
        is_bottom,
        is_right,
    )


@triton.jit
def _load(numbers, place, is_known):
    return tl.load(numbers + place, mask=is_known, other=0.0).to(tl.float32)


@triton.jit
def _load_squares(numbers, place, width, channels, is_top, is_bottom, is_right):
    return (
        _load(numbers, place, is_top),
        _load(numbers, place + channels, is_top & is_right),
        _load(numbers, place + width * channels, is_bottom),
        _load(numbers, place + (width + 1) * channels, is_bottom & is_right),
    )


@triton.jit
def _store_squares(
    numbers, place, width, channels, is_top, is_bottom, is_right, one, two, three, four
):
    kind = numbers.dtype.element_ty
    tl.store(numbers + place, one.to(kind), mask=is_top)
    tl.store(numbers + place + channels, two.to(kind), mask=is_top & is_right)
    tl.store(numbers + place + width * channels, three.to(kind), mask=is_bottom)
    last = numbers + place + (width + 1) * channels
    tl.store(last, four.to(kind), mask=is_bottom & is_right)


@triton.jit(do_not_specialize=["images", "height", "width"])
def _normalise(
    maps,
    weight,
    bias,
    outputs,
    means,
    inverses,
    images,
    height,
    width,
    channels,
    epsilon,
    has_relu: tl.constexpr,
    has_pool: tl.constexpr,
    quarter: tl.constexpr,
    block: tl.constexpr,
):
    image = tl.program_id(0).to(tl.int64)
    place, pooled, channel, is_top, is_bottom, is_right = _squares(
        height, width, channels, quarter, block
    )
    pixels, is_known = height * width, channel < channels
    one, two, three, four = _load_squares(
        maps + image * pixels * channels, place, width, channels, is_top, is_bottom, is_right
    )
    mean = (tl.sum(one + two, 0) + tl.sum(three + four, 0)) / pixels
    one = tl.where(is_top, one - mean, 0.0)
    two = tl.where(is_top & is_right, two - mean, 0.0)
    three = tl.where(is_bottom, three - mean, 0.0)
    four = tl.where(is_bottom & is_right, four - mean, 0.0)
    variance = tl.sum(one * one + two * two + three * three + four * four, 0) / pixels
    inverse = 1 / tl.sqrt(variance + epsilon)
    own = image // images * channels + channel
    scale = _load(weight, own, is_known) * inverse
    shift = _load(bias, own, is_known)
    one, two, three, four = (
        one * scale + shift,
        two * scale + shift,
        three * scale + shift,
        four * scale + shift,
    )
    if has_relu:
        one, two = tl.maximum(one, 0.0), tl.maximum(two, 0.0)
        three, four = tl.maximum(three, 0.0), tl.maximum(four, 0.0)
    if has_pool:
        into = outputs + image * (height // 2) * (width // 2) * channels + pooled
        merged = (one + two + three + four) * 0.25
        tl.store(into, merged.to(outputs.dtype.element_ty), mask=is_bottom & is_right)
    else:
        into = outputs + image * pixels * channels
        _store_squares(
            into, place, width, channels, is_top, is_bottom, is_right, one, two, three, four
        )
    tl.store(means + image * channels + channel, mean, mask=is_known)
    tl.store(inverses + image * channels + channel, inverse, mask=is_known)


@triton.jit(do_not_specialize=["images", "height", "width"])
def _pass_back(
    maps,
    above,
    weight,
    bias,
    means,
    inverses,
    changes,
    products,
    totals,
    images,
    height,
    width,
    channels,
    has_relu: tl.constexpr,
    has_pool: tl.constexpr,
    quarter: tl.constexpr,
    block: tl.constexpr,
):
    image = tl.program_id(0).to(tl.int64)
    place, pooled, channel, is_top, is_bottom, is_right = _squares(
        height, width, channels, quarter, block
    )
    pixels, is_known = height * width, channel < channels
    own, shared = image * channels + channel, image // images * channels + channel
    mean, inverse = _load(means, own, is_known), _load(inverses, own, is_known)
    factor, shift = _load(weight, shared, is_known), _load(bias, shared, is_known)
    begin = image * pixels * channels
    one, two, three, four = _load_squares(
        maps + begin, place, width, channels, is_top, is_bottom, is_right
    )
    one, two = (one - mean) * inverse, (two - mean) * inverse
    three, four = (three - mean) * inverse, (four - mean) * inverse
    above += image * ((height // 2) * (width // 2) if has_pool else pixels) * channels
    up_one, up_two, up_three, up_four = _load_slopes(
        above, place, pooled, width, channels, is_top, is_bottom, is_right, has_pool
    )
    if has_relu:
        up_one, up_two = _gated(up_one, one, factor, shift), _gated(up_two, two, factor, shift)
        up_three = _gated(up_three, three, factor, shift)
        up_four = _gated(up_four, four, factor, shift)
    total = tl.sum(up_one + up_two + up_three + up_four, 0)
    product = tl.sum(up_one * one + up_two * two + up_three * three + up_four * four, 0)
    tl.store(products + own, product, mask=is_known)
    tl.store(totals + own, total, mask=is_known)
    # The norm leaves neither the mean of a channel nor its size: what would change them is
    # taken from the gradient.
    level, size, scale = total / pixels, product / pixels, factor * inverse
    one, two = up_one - level - one * size, up_two - level - two * size
    three, four = up_three - level - three * size, up_four - level - four * size
    one, two, three, four = scale * one, scale * two, scale * three, scale * four
    into = changes + begin
    _store_squares(
        into, place, width, channels, is_top, is_bottom, is_right, one, two, three, four
    )


@triton.jit
def _gated(slope, normed, factor, shift):
    """Return the gradient before ReLU."""
    return tl.where(normed * factor + shift > 0, slope, 0.0)


@triton.jit
def _load_slopes(
    above, place, pooled, width, channels, is_top, is_bottom, is_right, has_pool: tl.constexpr
):
    """Return the gradients of the pixels after ReLU."""
    if has_pool:
        # Each pixel of a pool has a quarter of its gradient; those beyond the last pool none.
        share = _load(above, pooled, is_bottom & is_right) * 0.25
        return share, share, share, share
    else:  # noqa: RET505 - Triton compiles one of the two
        return _load_squares(above, place, width, channels, is_top, is_bottom, is_right)
