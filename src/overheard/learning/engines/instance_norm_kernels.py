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


def can_run_on(maps: Float[Tensor, "clients images height width channels"]) -> bool:
    """Return whether the kernels compute with these maps."""
    is_interpreted = not isinstance(_normalise, triton.JITFunction)  # in tests
    return (
        maps.dtype in (torch.float32, torch.bfloat16)
        and (maps.is_cuda or is_interpreted)
        and maps.shape[2] * maps.shape[3] <= MOST_PIXELS
    )


def normalise_and_pool(
    maps: Float[Tensor, "clients images height width channels"],
    weight: Float[Tensor, "clients channels"],
    bias: Float[Tensor, "clients channels"],
    epsilon: float,
) -> Float[Tensor, "clients images out_height out_width channels"]:
    """Normalise each channel of each image, then apply ReLU and a 2 x 2 average pool.

    Means and sums are in float32, also of maps in bfloat16. An odd last row or column counts in
    the norm, not in the pool.

    Args:
        maps: maps for which `can_run_on` is true.
        weight: factor of each channel.
        bias: what is added to each channel.
        epsilon: added to each variance.

    """
    outputs: Tensor = _Block.apply(maps, weight, bias, epsilon)
    return outputs


# Any: torch does not name the type of the context that autograd passes.
@final
class _Block(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, maps: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
        clients, images, height, width, channels = maps.shape
        maps, weight, bias = maps.contiguous(), weight.contiguous(), bias.contiguous()
        outputs = maps.new_empty(clients, images, height // 2, width // 2, channels)
        means, inverses = maps.new_empty(
            2, clients * images, channels, dtype=torch.float32
        ).unbind()
        grid, settings = _launch(maps)
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
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        maps, weight, bias, means, inverses = ctx.saved_tensors
        clients, images, height, width, channels = maps.shape
        changes = torch.empty_like(maps)
        products, totals = torch.empty_like(means), torch.empty_like(means)
        grid, settings = _launch(maps)
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
        return changes, sums[0].to(weight.dtype), sums[1].to(bias.dtype), None


def _launch(maps: Tensor) -> tuple[tuple[int, int], dict[str, Any]]:
    """Return the grid of programs and the settings of a kernel."""
    clients, images, height, width, channels = maps.shape
    quarter = triton.next_power_of_2(((height + 1) // 2) * ((width + 1) // 2))
    block = max(8, min(64, NUMBERS // quarter, triton.next_power_of_2(channels)))
    grid = clients * images, triton.cdiv(channels, block)
    return grid, {
        "quarter": quarter,
        "block": block,
        "num_warps": 8 if quarter * block >= NUMBERS else 4,
        "enable_fp_fusion": True,  # versions of Triton differ in the default
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
    known = is_top, is_bottom, (column * 2 + 1 < width)[:, None]
    return place[:, None] + channel, pooled[:, None] + channel, channel, known


@triton.jit
def _load(numbers, place, is_known):
    return tl.load(numbers + place, mask=is_known, other=0.0).to(tl.float32)


@triton.jit
def _load_squares(numbers, place, width, channels, known):
    is_top, is_bottom, is_right = known
    return (
        _load(numbers, place, is_top),
        _load(numbers, place + channels, is_top & is_right),
        _load(numbers, place + width * channels, is_bottom),
        _load(numbers, place + (width + 1) * channels, is_bottom & is_right),
    )


@triton.jit
def _store_squares(numbers, place, width, channels, known, one, two, three, four):
    is_top, is_bottom, is_right = known
    kind = numbers.dtype.element_ty
    tl.store(numbers + place, one.to(kind), mask=is_top)
    tl.store(numbers + place + channels, two.to(kind), mask=is_top & is_right)
    tl.store(numbers + place + width * channels, three.to(kind), mask=is_bottom)
    last = numbers + place + (width + 1) * channels
    tl.store(last, four.to(kind), mask=is_bottom & is_right)


@triton.jit
def _load_shares(above, image, pooled, height, width, channels, known):
    """Return the gradients after ReLU: a quarter of the pool's, and 0 beyond the last pool."""
    above += image * (height // 2) * (width // 2) * channels
    return _load(above, pooled, known[1] & known[2]) * 0.25


@triton.jit
def _known_only(known, one, two, three, four):
    """Set pixels beyond the maps to 0."""
    is_top, is_bottom, is_right = known
    one, two = tl.where(is_top, one, 0.0), tl.where(is_top & is_right, two, 0.0)
    three, four = tl.where(is_bottom, three, 0.0), tl.where(is_bottom & is_right, four, 0.0)
    return one, two, three, four


@triton.jit
def _normed(known, pixels, epsilon, one, two, three, four):
    """Return the normed pixels, the mean and the inverse of the deviation of each channel."""
    mean = (tl.sum(one + two, 0) + tl.sum(three + four, 0)) / pixels
    one, two, three, four = _known_only(
        known, one - mean, two - mean, three - mean, four - mean
    )
    variance = tl.sum(one * one + two * two + three * three + four * four, 0) / pixels
    inverse = 1 / tl.sqrt(variance + epsilon)
    return one * inverse, two * inverse, three * inverse, four * inverse, mean, inverse


@triton.jit
def _above_zero(numbers):
    # The larger of a number and 0 would hide what is no number, as where training diverges.
    return tl.where(numbers < 0, 0.0, numbers)


@triton.jit
def _store_pool(
    outputs, image, pooled, height, width, channels, known, factor, shift, one, two, three, four
):
    """Store the normed pixels scaled and shifted, after ReLU and the pool."""
    one = _above_zero(one * factor + shift)
    two = _above_zero(two * factor + shift)
    three = _above_zero(three * factor + shift)
    four = _above_zero(four * factor + shift)
    merged = (one + two + three + four) * 0.25
    into = outputs + image * (height // 2) * (width // 2) * channels + pooled
    tl.store(into, merged.to(outputs.dtype.element_ty), mask=known[1] & known[2])


@triton.jit
def _before_norm(pixels, factor, shift, inverse, share, one, two, three, four):
    """Return the gradients before the norm, and those of its factor and shift.

    The norm leaves neither the mean of a channel nor its size: what would change them is taken
    from the gradient.
    """
    up_one = tl.where(one * factor + shift > 0, share, 0.0)
    up_two = tl.where(two * factor + shift > 0, share, 0.0)
    up_three = tl.where(three * factor + shift > 0, share, 0.0)
    up_four = tl.where(four * factor + shift > 0, share, 0.0)
    total = tl.sum(up_one + up_two + up_three + up_four, 0)
    product = tl.sum(up_one * one + up_two * two + up_three * three + up_four * four, 0)
    level, size, scale = total / pixels, product / pixels, factor * inverse
    one, two = scale * (up_one - level - one * size), scale * (up_two - level - two * size)
    three = scale * (up_three - level - three * size)
    four = scale * (up_four - level - four * size)
    return one, two, three, four, product, total


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
    quarter: tl.constexpr,
    block: tl.constexpr,
):
    image, pixels = tl.program_id(0).to(tl.int64), height * width
    place, pooled, channel, known = _squares(height, width, channels, quarter, block)
    one, two, three, four = _load_squares(
        maps + image * pixels * channels, place, width, channels, known
    )
    one, two, three, four, mean, inverse = _normed(
        known, pixels, epsilon, one, two, three, four
    )
    is_channel = channel < channels
    own, shared = image * channels + channel, image // images * channels + channel
    tl.store(means + own, mean, mask=is_channel)
    tl.store(inverses + own, inverse, mask=is_channel)
    factor, shift = _load(weight, shared, is_channel), _load(bias, shared, is_channel)
    _store_pool(
        outputs,
        image,
        pooled,
        height,
        width,
        channels,
        known,
        factor,
        shift,
        one,
        two,
        three,
        four,
    )


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
    quarter: tl.constexpr,
    block: tl.constexpr,
):
    image, pixels = tl.program_id(0).to(tl.int64), height * width
    place, pooled, channel, known = _squares(height, width, channels, quarter, block)
    is_channel = channel < channels
    own, shared = image * channels + channel, image // images * channels + channel
    mean, inverse = _load(means, own, is_channel), _load(inverses, own, is_channel)
    factor, shift = _load(weight, shared, is_channel), _load(bias, shared, is_channel)
    begin = image * pixels * channels
    one, two, three, four = _load_squares(maps + begin, place, width, channels, known)
    one, two = (one - mean) * inverse, (two - mean) * inverse
    three, four = (three - mean) * inverse, (four - mean) * inverse
    share = _load_shares(above, image, pooled, height, width, channels, known)
    one, two, three, four, product, total = _before_norm(
        pixels, factor, shift, inverse, share, one, two, three, four
    )
    tl.store(products + own, product, mask=is_channel)
    tl.store(totals + own, total, mask=is_channel)
    _store_squares(changes + begin, place, width, channels, known, one, two, three, four)
