"""Convolutions of stacked clients as Triton kernels, which read neighbourhoods from the maps.

Batched products would first write the neighbourhood of each pixel to memory, nine times the
maps for 3 x 3 kernels. Each number is summed by one program in one order, so that two runs are
equal to the bit.
"""

from dataclasses import dataclass
from typing import Literal, final

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

Products = Literal["ieee", "tf32", "tf32x3"]
"""How products of float32 numbers are computed.

"ieee" rounds each product and sum to float32, without tensor cores. "tf32" rounds the factors
to 10 bits. "tf32x3" adds three products of such parts, whose error is that of float32. Factors
in bfloat16 are multiplied as they are."""

SMALLEST_SIDE = 16
"""The smallest side of a tile that tensor cores multiply."""


@final
@dataclass(frozen=True, slots=True)
class Tile:
    """The part of a product that one program computes.

    Args:
        rows: its rows.
        columns: its columns.
        depth: numbers that are multiplied and added at a time.
        warps: groups of 32 threads.
        stages: parts of the factors that are on their way from memory at a time.

    """

    rows: int
    columns: int
    depth: int
    warps: int = 4
    stages: int = 3


def convolve(
    maps: Float[Tensor, "clients images height width channels"],
    kernels: Float[Tensor, "clients outs kernel_height kernel_width channels"],
    bias: Float[Tensor, "clients outs"] | None,
    padding: tuple[int, int],
    products: Products,
    tile: Tile | None = None,
) -> Float[Tensor, "clients images out_height out_width outs"]:
    """Convolve the maps of each client with its kernels, with stride 1.

    Args:
        maps: maps of the dtype of the kernels; less than 2**31 numbers a client.
        kernels: kernels of each client.
        bias: added to each pixel.
        padding: zeros on each side, of the height and of the width.
        products: how products are computed.
        tile: part of the pixels and outs of one program; None = as measured.

    """
    clients, images, height, width, channels = maps.shape
    _, outs, kernel_height, kernel_width, _ = kernels.shape
    out_height = height + 2 * padding[0] - kernel_height + 1
    out_width = width + 2 * padding[1] - kernel_width + 1
    outputs = maps.new_empty(clients, images, out_height, out_width, outs)
    pixels = images * out_height * out_width
    is_flat = channels < SMALLEST_SIDE
    depth = kernel_height * kernel_width * channels if is_flat else channels
    tile = tile or _tile_of_convolution(outs, depth, maps.dtype, products)
    grid = (triton.cdiv(pixels, tile.rows), triton.cdiv(outs, tile.columns), clients)
    _convolve[grid](
        maps.contiguous(),
        kernels.contiguous(),
        maps if bias is None else bias.contiguous(),
        outputs,
        pixels,
        height,
        width,
        channels,
        out_height,
        out_width,
        outs,
        images * height * width * channels,
        padding[0],
        padding[1],
        kernel_height=kernel_height,
        kernel_width=kernel_width,
        has_bias=bias is not None,
        is_flat=is_flat,
        is_even=depth % tile.depth == 0,
        products=products,
        block_rows=tile.rows,
        block_columns=tile.columns,
        block_depth=tile.depth,
        num_warps=tile.warps,
        num_stages=tile.stages,
    )
    return outputs


@triton.jit(do_not_specialize=["pixels", "height", "width", "out_height", "out_width"])
def _convolve(
    maps,
    kernels,
    bias,
    outputs,
    pixels,
    height,
    width,
    channels,
    out_height,
    out_width,
    outs,
    numbers,
    top,
    left,
    kernel_height: tl.constexpr,
    kernel_width: tl.constexpr,
    has_bias: tl.constexpr,
    is_flat: tl.constexpr,
    is_even: tl.constexpr,
    products: tl.constexpr,
    block_rows: tl.constexpr,
    block_columns: tl.constexpr,
    block_depth: tl.constexpr,
):
    taps: tl.constexpr = kernel_height * kernel_width
    client = tl.program_id(2).to(tl.int64)
    maps += client * numbers
    kernels += client * outs * taps * channels
    pixel = tl.program_id(0) * block_rows + tl.arange(0, block_rows)
    out = tl.program_id(1) * block_columns + tl.arange(0, block_columns)
    is_pixel, is_out = (pixel < pixels)[:, None], (out < outs)[None, :]
    y, x, corner = _corners(pixel[:, None], height, width, out_height, out_width, top, left)
    total = tl.zeros([block_rows, block_columns], dtype=tl.float32)
    length = taps * channels if is_flat else channels
    parts = tl.cdiv(length, block_depth)
    for part in range(parts if is_flat else taps * parts):
        place = part % parts * block_depth + tl.arange(0, block_depth)
        is_place = place < length
        if is_flat:
            tap, channel = place // channels, place % channels
        else:
            tap, channel = part // parts, place
            place = tap * channels + channel
        row, column = tap // kernel_width, tap % kernel_width
        is_inside = is_pixel & _is_inside(y + row, x + column, height, width)
        is_kernel = is_out
        if not is_even:
            is_inside = is_inside & is_place[None, :]
            is_kernel = is_kernel & is_place[:, None]
        step = (row * width + column) * channels + channel
        neighbours = tl.load(maps + corner * channels + step, mask=is_inside, other=0.0)
        here = kernels + out[None, :] * (taps * channels) + place[:, None]
        weights = tl.load(here, mask=is_kernel, other=0.0)
        total = tl.dot(neighbours, weights, total, input_precision=products)
    if has_bias:
        total += tl.load(bias + client * outs + out, mask=out < outs, other=0.0)
    into = outputs + client * pixels * outs + pixel[:, None] * outs + out
    tl.store(into, total.to(outputs.dtype.element_ty), mask=is_pixel & is_out)


@triton.jit
def _corners(pixel, height, width, out_height, out_width, top, left):
    """Return the row, the column and the place in the maps of the first tap of each pixel."""
    image = pixel // (out_height * out_width)
    y = pixel // out_width % out_height - top
    x = pixel % out_width - left
    return y, x, (image * height + y) * width + x


@triton.jit
def _is_inside(y, x, height, width):
    return (y >= 0) & (y < height) & (x >= 0) & (x < width)


def kernel_gradients(
    maps: Float[Tensor, "clients images height width channels"],
    gradients: Float[Tensor, "clients images out_height out_width outs"],
    kernel_size: tuple[int, int],
    padding: tuple[int, int],
    products: Products,
    tile: Tile | None = None,
    splits: int | None = None,
) -> Float[Tensor, "clients outs kernel_height kernel_width channels"]:
    """Return the gradients of kernels, summed over pixels, given those of the outputs.

    Args:
        maps: what was convolved.
        gradients: gradients of the outputs, of the same dtype.
        kernel_size: height and width.
        padding: as it was convolved.
        products: how products are computed.
        tile: part of the outs and channels of one program; None = as measured.
        splits: parts of the pixels, whose sums are added in order; None = as many as keep a
            device busy.

    """
    clients, images, height, width, channels = maps.shape
    _, _, out_height, out_width, outs = gradients.shape
    pixels = images * out_height * out_width
    taps = kernel_size[0] * kernel_size[1]
    is_flat = channels < SMALLEST_SIDE
    length = taps * channels if is_flat else channels
    tile = tile or _tile_of_gradients(outs, length, maps.dtype, products)
    blocks = triton.cdiv(length, tile.columns) * (1 if is_flat else taps)
    programs = triton.cdiv(outs, tile.rows) * blocks * clients
    if splits is None:
        splits = max(1, min(_BUSY_PROGRAMS // programs, pixels // (8 * tile.depth)))
    # Whole parts of the depth, so that a number belongs to one split.
    share = triton.cdiv(triton.cdiv(pixels, splits), tile.depth) * tile.depth
    sums = maps.new_empty(splits, clients, outs, *kernel_size, channels, dtype=torch.float32)
    _sum_kernel_gradients[(blocks, triton.cdiv(outs, tile.rows), clients * splits)](
        maps.contiguous(),
        gradients.contiguous(),
        sums,
        clients,
        pixels,
        share,
        height,
        width,
        channels,
        out_height,
        out_width,
        outs,
        images * height * width * channels,
        padding[0],
        padding[1],
        kernel_height=kernel_size[0],
        kernel_width=kernel_size[1],
        is_flat=is_flat,
        products=products,
        block_rows=tile.rows,
        block_columns=tile.columns,
        block_depth=tile.depth,
        num_warps=tile.warps,
        num_stages=tile.stages,
    )
    return sums[0] if splits == 1 else sums.sum(0)


@triton.jit(
    do_not_specialize=[
        "clients",
        "pixels",
        "share",
        "height",
        "width",
        "out_height",
        "out_width",
    ]
)
def _sum_kernel_gradients(
    maps,
    gradients,
    sums,
    clients,
    pixels,
    share,
    height,
    width,
    channels,
    out_height,
    out_width,
    outs,
    numbers,
    top,
    left,
    kernel_height: tl.constexpr,
    kernel_width: tl.constexpr,
    is_flat: tl.constexpr,
    products: tl.constexpr,
    block_rows: tl.constexpr,
    block_columns: tl.constexpr,
    block_depth: tl.constexpr,
):
    taps: tl.constexpr = kernel_height * kernel_width
    split = tl.program_id(2) // clients
    client = (tl.program_id(2) % clients).to(tl.int64)
    maps += client * numbers
    gradients += client * pixels * outs
    out = tl.program_id(1) * block_rows + tl.arange(0, block_rows)
    length = taps * channels if is_flat else channels
    parts = tl.cdiv(length, block_columns)
    place = tl.program_id(0) % parts * block_columns + tl.arange(0, block_columns)
    is_place = (place < length)[None, :]
    if is_flat:
        tap, channel = place // channels, place % channels
    else:
        tap, channel = tl.program_id(0) // parts, place
        place = tap * channels + channel
    row, column = tap // kernel_width, tap % kernel_width
    step = (row * width + column) * channels + channel
    is_out = (out < outs)[:, None]
    total = tl.zeros([block_rows, block_columns], dtype=tl.float32)
    first = split * share
    for begin in range(first, tl.minimum(first + share, pixels), block_depth):
        pixel = begin + tl.arange(0, block_depth)
        slopes = tl.load(
            gradients + pixel[None, :] * outs + out[:, None],
            mask=is_out & (pixel < pixels)[None, :],
            other=0.0,
        )
        y, x, corner = _corners(pixel[:, None], height, width, out_height, out_width, top, left)
        is_inside = (pixel < pixels)[:, None] & _is_inside(y + row, x + column, height, width)
        neighbours = tl.load(
            maps + corner * channels + step, mask=is_inside & is_place, other=0.0
        )
        total = tl.dot(slopes, neighbours, total, input_precision=products)
    sums += tl.program_id(2).to(tl.int64) * outs * taps * channels
    into = sums + out[:, None] * (taps * channels) + place[None, :]
    tl.store(into, total, mask=is_out & is_place)


_BUSY_PROGRAMS = 4 * 132
"""Programs that keep the largest devices of today busy (132 processors)."""


def _tile_of_convolution(outs: int, depth: int, dtype: torch.dtype, products: Products) -> Tile:
    """Return the tile of a convolution."""
    columns = _side(outs, 128)
    if dtype == torch.bfloat16:
        return Tile(128, columns, _side(depth, 64), warps=8)
    if products == "ieee":
        return Tile(64, _side(outs, 64), 16)
    # Three products of twice as many columns do not fit into the registers of capability 8.0.
    columns = _side(outs, 64) if products == "tf32x3" else columns
    return Tile(128, columns, _side(depth, 32), warps=8)


def _tile_of_gradients(outs: int, columns: int, dtype: torch.dtype, products: Products) -> Tile:
    """Return the tile of the gradients of kernels."""
    if dtype == torch.bfloat16:
        return Tile(_side(outs, 128), _side(columns, 128), 64, warps=8)
    if products == "ieee":
        return Tile(_side(outs, 64), _side(columns, 64), 16)
    return Tile(_side(outs, 128), _side(columns, 128), 32, warps=8)


def _side(numbers: int, most: int) -> int:
    """Return the side of a tile for so many numbers."""
    return min(max(int(triton.next_power_of_2(numbers)), SMALLEST_SIDE), most)
