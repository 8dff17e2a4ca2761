"""Whether kernels that were never measured would make stacked convolutions faster.

A kernel belongs into the product if it makes a goal's figure 1.3 times better. Those in
`candidates` were written without a GPU. This section measures whole steps of 100 clients with
each of them in place of the product's products, and the convolutions alone by tile.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from candidates.convolution_kernels import Products, Tile, convolve, kernel_gradients
from candidates.first_block_kernels import FirstBlock
from cohorts import COLOUR, GREY
from graphs import recorded
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from overheard.core.recipe import Precision
from overheard.learning.engines import convolution_products, stacked_convolutions
from overheard.learning.engines.stacked_convolutions import StackedConvolutions
from overheard.learning.models.conv_net import ConvNet
from overheard.learning.precision import computing

GAIN = 1.3
"""From how many times the product's speed a kernel belongs into the product."""

PRODUCTS: dict[Precision, tuple[Products, ...]] = {
    "float32": ("tf32x3", "ieee"),
    "tf32": ("tf32",),
    "bf16": ("tf32",),
}
"""Ways to multiply that have the precision; factors in bfloat16 are multiplied as they are."""

TILES = (
    Tile(128, 128, 32, 8, 3),
    Tile(128, 128, 32, 8, 2),
    Tile(128, 64, 32, 8, 3),
    Tile(64, 128, 32, 4, 3),
    Tile(128, 128, 16, 8, 4),
    Tile(128, 128, 64, 8, 2),
    Tile(256, 128, 32, 8, 3),
    Tile(32, 128, 32, 4, 4),
    Tile(64, 64, 16, 4, 3),
)


def measure_kernels(clients: int = 100, batch: int = 32) -> dict[str, Any]:
    """Return milliseconds of steps and of convolutions, and which candidates gain enough."""
    rows: dict[str, Any] = {}
    for name, task in (("1x28x28", GREY), ("3x32x32", COLOUR)):
        model = ConvNet().build(task).cuda()
        for precision, ways in PRODUCTS.items():
            one = _Step(model, task.shape, precision, clients, batch)
            rows[f"step {name}, {precision}"] = compare_steps(one, ways)
    for precision, ways in PRODUCTS.items():
        rows[f"convolution 14x14, {precision}"] = compare_tiles(precision, ways, clients, batch)
    return rows


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of many clients without an update of their weights."""

    model: nn.Module
    shape: tuple[int, ...]
    precision: Precision
    clients: int
    batch: int

    def run(self, change: "Change | None") -> tuple[float, Tensor]:
        """Return milliseconds and the gradient, with a change of the product or without."""
        torch.manual_seed(0)
        stack = [torch.stack([one.detach()] * self.clients) for one in self.model.parameters()]
        device = stack[0].device
        images = torch.randn(self.clients, self.batch, *self.shape, device=device)
        labels = torch.randint(0, 2, (self.clients, self.batch), device=device)
        weights = torch.full((self.clients, self.batch), 1 / self.batch, device=device)
        gradients = [torch.empty_like(one) for one in stack]
        networks = StackedConvolutions(self.model, precision=self.precision)
        step = partial(networks.write_gradients, gradients, stack, images, labels, weights)
        with computing(self.precision), change(networks) if change else nullcontext():
            spent = milliseconds(step)
        return spent, torch.cat([one.flatten() for one in gradients])


Change = Callable[[StackedConvolutions], AbstractContextManager[Any]]


def compare_steps(one: _Step, ways: Sequence[Products]) -> dict[str, Any]:
    """Return a row of the product and of each candidate."""
    changes: dict[str, Change] = {"first block merged": merging_first}
    changes |= {f"convolutions, {way}": partial(convolving, way) for way in ways}
    spent, expected = one.run(None)
    row: dict[str, Any] = {"product": {"ms": spent}}
    for what, change in changes.items():
        try:
            spent, gradient = one.run(change)
        except Exception as error:  # a card may lack what a candidate takes
            row[what] = f"{type(error).__name__}: {str(error)[:200]}"
            continue
        difference = float((gradient - expected).norm() / expected.norm())
        row[what] = {"ms": spent, "difference": difference}
    return row | {"gain enough": _gaining(row)}


def compare_tiles(
    precision: Precision, ways: Sequence[Products], clients: int, batch: int, width: int = 128
) -> dict[str, Any]:
    """Return rows of a convolution of `width` maps and of the gradient of its kernels."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    maps = torch.randn(clients, batch, 14, 14, width, device=device, dtype=dtype)
    kernels = torch.randn(clients, width, width, 3, 3, device=device)
    own = kernels.permute(0, 1, 3, 4, 2).to(dtype).contiguous()
    found = convolution_products._neighbourhoods(maps, kernels, (1, 1))

    def forward() -> Tensor:
        near = convolution_products._neighbourhoods(maps, kernels, (1, 1))
        return convolution_products._product(near, kernels, None)

    def backward() -> Tensor:
        return torch.bmm(maps.flatten(1, 3).transpose(1, 2), found.flatten(1, 3))

    rows: dict[str, Any] = {}
    with computing(precision):
        rows["forward"] = {"product": {"ms": milliseconds(forward)}}
        rows["kernels"] = {"product": {"ms": milliseconds(backward)}}
    for way in ways:
        for tile in TILES:
            work = {
                "forward": partial(convolve, maps, own, None, (1, 1), way, tile),
                "kernels": partial(kernel_gradients, maps, maps, (3, 3), (1, 1), way, tile),
            }
            for what, run in work.items():
                place = rows[what]
                try:
                    place[f"{way}, {tile}"] = {"ms": milliseconds(run)}
                except Exception as error:
                    place[f"{way}, {tile}"] = f"{type(error).__name__}: {str(error)[:80]}"
    return {what: row | {"gain enough": _gaining(row)} for what, row in rows.items()}


def _gaining(row: dict[str, Any]) -> list[str]:
    product = row["product"]["ms"]
    return [
        what
        for what, one in row.items()
        if isinstance(one, dict) and product > GAIN * one["ms"]
    ]


def milliseconds(work: Callable[[], object]) -> float:
    """Return the milliseconds that the work takes as a CUDA graph; on a CPU, by the clock."""
    if not torch.cuda.is_available():
        began = time.perf_counter()
        work()
        return (time.perf_counter() - began) * 1e3
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        work()
    torch.cuda.current_stream().wait_stream(aside)
    graph = recorded(work)
    graph.replay()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(5):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 5


@contextmanager
def convolving(way: Products, networks: StackedConvolutions) -> Iterator[None]:
    """Let the candidate convolve in place of the product."""

    def run(
        maps: Tensor, kernels: Tensor, bias: Tensor | None, padding: tuple[int, int]
    ) -> Tensor:
        outputs: Tensor = _Convolve.apply(maps, kernels, bias, padding, way)
        return outputs

    with patch.object(stacked_convolutions, "convolve", run):
        yield


@contextmanager
def merging_first(networks: StackedConvolutions) -> Iterator[None]:
    """Let the candidate compute the first convolution and its norm at once."""
    first, *rest = networks._blocks
    with patch.object(networks, "_blocks", [_First(first), *rest]):
        yield


@dataclass(frozen=True, slots=True)
class _First:
    """The first block, whose norm takes the bias of its convolution away."""

    block: Any

    @property
    def parameters(self) -> int:
        """The number of its parameters."""
        return int(self.block.parameters)

    def run(self, maps: Tensor, parameters: Sequence[Tensor]) -> Tensor:
        """Run the block."""
        kernels, bias, weight, shift = parameters
        outputs = FirstBlock(self.block.padding, self.block.epsilon).run(
            maps, kernels, weight, shift
        )
        # So that the bias has a gradient, which is 0.
        return outputs + 0 * bias.sum().to(outputs.dtype)


# Any: torch does not name the type of the context that autograd passes.
class _Convolve(torch.autograd.Function):
    """The candidate with its gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        maps: Tensor,
        kernels: Tensor,
        bias: Tensor | None,
        padding: tuple[int, int],
        way: Products,
    ) -> Tensor:
        """Convolve."""
        maps = maps.contiguous()
        ctx.save_for_backward(maps, kernels)
        ctx.padding, ctx.way = padding, way
        own = kernels.permute(0, 1, 3, 4, 2).to(maps.dtype).contiguous()
        return convolve(maps, own, bias, padding, way)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *above: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of maps, kernels and bias."""
        maps, kernels = ctx.saved_tensors
        gradients, (height, width) = above[0].contiguous(), kernels.shape[3:]
        own = kernel_gradients(maps, gradients, (height, width), ctx.padding, ctx.way)
        bias = (
            gradients.sum((1, 2, 3), dtype=kernels.dtype) if ctx.needs_input_grad[2] else None
        )
        changes = None
        if ctx.needs_input_grad[0]:
            turned = kernels.flip(3, 4).permute(0, 2, 3, 4, 1).to(maps.dtype).contiguous()
            rest = height - 1 - ctx.padding[0], width - 1 - ctx.padding[1]
            changes = convolve(gradients, turned, None, rest, ctx.way)
        return changes, own.permute(0, 1, 4, 2, 3), bias, None, None
