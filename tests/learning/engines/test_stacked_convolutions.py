"""Stacked convolutions, with their kernels in Triton's interpreter."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from overheard.core.task import Task
from overheard.learning.engines import convolution_products
from overheard.learning.engines.stacked import VmappedNetworks
from overheard.learning.models.conv_net import ConvNet
from overheard.learning.models.decaf_conv2 import DecafConv2
from overheard.learning.models.ldia_conv import LdiaConv
from overheard.learning.models.shift_conv import ShiftConv

pytest.importorskip("triton")

from overheard.learning.engines import convolution_kernels, instance_norm_kernels
from overheard.learning.engines.convolution_kernels import Tile
from overheard.learning.engines.first_block_kernels import FirstBlock
from overheard.learning.engines.stacked_convolutions import (
    StackedConvolutions,
    normalise_by_torch,
)

SMALL_TILE = Tile(16, 16, 16)
GREY = Task((1, 7, 6), ("a", "b", "c"))


def _drawn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator).to(dtype)


@pytest.mark.parametrize(
    ("channels", "outs", "side", "padding"),
    [(3, 5, 3, 1), (18, 20, 3, 1), (16, 16, 1, 0), (17, 3, 2, 0)],
)
def test_kernels_convolve_as_torch_does(channels, outs, side, padding):
    # The sides of no map, and few numbers of channels, are multiples of a tile.
    maps, bias = _drawn(2, 1, 5, 4, channels), _drawn(2, outs, seed=1)
    kernels = _drawn(2, outs, side, side, channels, seed=2)
    expected = torch.stack(
        [
            functional.conv2d(
                own.permute(0, 3, 1, 2), kernel.permute(0, 3, 1, 2), offset, padding=padding
            ).permute(0, 2, 3, 1)
            for own, kernel, offset in zip(maps, kernels, bias, strict=True)
        ]
    )
    both = (padding, padding)
    found = convolution_kernels.convolve(maps, kernels, bias, both, "ieee", SMALL_TILE)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)
    by_torch = convolution_products.convolve(maps, kernels, bias, both)
    torch.testing.assert_close(by_torch, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize(("channels", "outs"), [(3, 5), (18, 20)])
def test_kernels_sum_the_gradient_of_each_weight_over_all_pixels(channels, outs, splits):
    maps, above = _drawn(1, 3, 5, 4, channels), _drawn(1, 3, 5, 4, outs, seed=1)
    expected = convolution_products.kernel_gradients(
        maps.double(), above.double(), (3, 3), (1, 1)
    )
    found = convolution_kernels.kernel_gradients(
        maps, above, (3, 3), (1, 1), "ieee", SMALL_TILE, splits
    )
    torch.testing.assert_close(found, expected.float(), rtol=1e-5, atol=1e-4)
    by_torch = torch.stack(
        [
            torch.nn.grad.conv2d_weight(
                own.permute(0, 3, 1, 2),
                (outs, channels, 3, 3),
                up.permute(0, 3, 1, 2),
                padding=1,
            ).permute(0, 2, 3, 1)
            for own, up in zip(maps.double(), above.double(), strict=True)
        ]
    )
    torch.testing.assert_close(expected, by_torch)


@pytest.mark.parametrize(
    ("height", "width", "channels", "has_relu", "has_pool"),
    [(7, 7, 5, True, True), (4, 6, 16, False, True), (5, 3, 9, True, False)],
)
def test_kernels_normalise_and_pool_as_torch_does(height, width, channels, has_relu, has_pool):
    # Last rows and columns of odd maps count in the norm, not in the pool.
    given = [
        _drawn(2, 2, height, width, channels),
        _drawn(2, channels, seed=1),
        _drawn(2, channels, seed=2),
    ]
    found = []
    for run, dtype in (
        (instance_norm_kernels.normalise_and_pool, torch.float32),
        (normalise_by_torch, torch.float64),
    ):
        leaves = [one.to(dtype).requires_grad_() for one in given]
        outputs = run(*leaves, 1e-5, has_relu, has_pool)
        above = _drawn(*outputs.shape, dtype=dtype, seed=3)
        found.append([outputs, *torch.autograd.grad((outputs * above).sum(), leaves)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other.float(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("channels", "padding", "has_relu", "has_pool"), [(1, 1, True, True), (2, 0, False, False)]
)
def test_kernels_merge_the_first_convolution_with_its_norm(
    channels, padding, has_relu, has_pool
):
    images = _drawn(1, 2, 4, 5, channels)
    given = [_drawn(1, 3, channels, 2, 2), _drawn(1, 3, seed=1), _drawn(1, 3, seed=2)]
    block = FirstBlock((padding, padding), 1e-5, has_relu, has_pool)
    found = []
    for dtype in (torch.float32, torch.float64):
        leaves = [one.to(dtype).requires_grad_() for one in given]
        if dtype == torch.float32:
            outputs = block.run(images, *leaves)
        else:
            own = leaves[0].permute(0, 1, 3, 4, 2)
            maps = convolution_products.convolve(images.double(), own, None, block.padding)
            outputs = normalise_by_torch(maps, *leaves[1:], 1e-5, has_relu, has_pool)
        above = _drawn(*outputs.shape, dtype=dtype, seed=3)
        found.append([outputs, *torch.autograd.grad((outputs * above).sum(), leaves)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other.float(), rtol=1e-4, atol=1e-5)


def test_norms_by_torch_are_those_of_a_group_norm():
    maps, weight, bias = _drawn(2, 2, 5, 4, 3), _drawn(2, 3, seed=1), _drawn(2, 3, seed=2)
    expected = torch.stack(
        [
            functional.avg_pool2d(
                functional.group_norm(own.permute(0, 3, 1, 2), 3, *of_client).relu(), 2
            ).permute(0, 2, 3, 1)
            for own, *of_client in zip(maps, weight, bias, strict=True)
        ]
    )
    found = normalise_by_torch(maps, weight, bias, 1e-5, True, True)
    torch.testing.assert_close(found, expected)


def _bent(activation: nn.Module) -> nn.Sequential:
    """A network without padding and biases, whose norm stands alone."""
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=(0, 1), bias=False),
        nn.GroupNorm(4, 4),
        activation,
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(24, 3, bias=False),
    )


NETWORKS = {
    "conv_net": (partial(ConvNet(blocks=2, width=17).build, GREY), (1, 7, 6)),
    "decaf_conv2": (partial(DecafConv2(3, 4, 5).build, GREY), (1, 7, 6)),
    "ldia_conv": (
        partial(LdiaConv(3).build, Task((1, 16, 17), ("a", "b", "c"))),
        (1, 16, 17),
    ),
    "tanh": (partial(_bent, nn.Tanh()), (2, 8, 4)),
    "leaky": (partial(_bent, nn.LeakyReLU(0.1)), (2, 8, 4)),
}


def _both(model: nn.Sequential, shape, labels, aim, dtype):
    """Return losses and gradients of the stacked convolutions and of vmap in float64."""
    assert StackedConvolutions.supports(model)
    parameters = [
        _drawn(3, *one.shape, dtype=torch.float64, seed=place) / max(one[0].numel(), 2) ** 0.5
        for place, one in enumerate(model.parameters())
    ]
    inputs, weights = _drawn(3, 2, *shape, dtype=torch.float64), torch.rand(3, 2).double()
    weights[1, 1] = 0  # pads a batch
    found = []
    for networks, kind in (
        (StackedConvolutions(model, *aim), dtype),
        (VmappedNetworks(model.double(), *aim), torch.float64),
    ):
        stack = [one.to(kind) for one in parameters]
        gradients = [torch.full_like(one, torch.nan) for one in stack]
        with torch.no_grad():
            losses = networks.write_gradients(
                gradients, stack, inputs.to(kind), labels, weights.to(kind)
            )
        found.append([losses, *gradients])
    return zip(*found, strict=True)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(
    "aim", [(0.0, "cross_entropy"), (0.3, "cross_entropy"), (0.0, "squared_error")], ids=str
)
def test_gradients_and_losses_equal_those_of_vmap_in_float64(name, aim):
    build, shape = NETWORKS[name]
    labels = torch.tensor([[0, 1], [2, 0], [1, 1]])
    for one, other in _both(build(), shape, labels, aim, torch.float64):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", ["conv_net", "decaf_conv2"])
def test_gradients_and_losses_of_the_kernels_are_those_of_float32(name):
    build, shape = NETWORKS[name]
    labels = torch.tensor([[0, 1], [2, 0], [1, 1]])
    aim = (0.0, "cross_entropy")
    for one, other in _both(build(), shape, labels, aim, torch.float32):
        torch.testing.assert_close(one, other.float(), rtol=1e-4, atol=1e-6)


def test_float_labels_and_binary_cross_entropy_have_the_losses_of_vmap():
    build, shape = NETWORKS["decaf_conv2"]
    labels = torch.tensor([[[0.0, 1, 1]] * 2] * 3)
    aim = (0.0, "binary_cross_entropy")
    for one, other in _both(build(), shape, labels, aim, torch.float64):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-13)


def test_products_in_bfloat16_keep_two_digits_of_float32():
    build, shape = NETWORKS["conv_net"]
    model = build()
    stack = [torch.stack([one.detach()] * 2) for one in model.parameters()]
    inputs = _drawn(2, 3, *shape)
    exact, rounded = (
        StackedConvolutions(model, precision=precision).logits(stack, inputs)
        for precision in ("float32", "bf16")
    )
    assert rounded.dtype == torch.float32
    error = (rounded - exact).norm() / exact.norm()
    assert 1e-4 < error < 3e-2


def test_clipped_gradients_are_those_of_the_other_networks():
    model = NETWORKS["decaf_conv2"][0]()
    stack = [torch.stack([one.detach()] * 2) for one in model.parameters()]
    found = []
    for networks in (
        VmappedNetworks(model),
        StackedConvolutions(model, clipping=VmappedNetworks(model)),
    ):
        gradients = [torch.empty_like(one) for one in stack]
        networks.write_gradients(
            gradients,
            stack,
            _drawn(2, 3, 1, 7, 6),
            torch.zeros(2, 3, dtype=torch.int64),
            torch.ones(2, 3),
            clip=0.1,
        )
        found.append(gradients)
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_other_networks_are_not_supported():
    assert StackedConvolutions.supports(ShiftConv().build(Task((1, 8, 8), ("a", "b"))))
    convolution, end = nn.Conv2d(1, 2, 3), (nn.Flatten(), nn.Linear(8, 2))
    for layers in (
        (convolution,),  # no logits
        (nn.Flatten(), nn.Linear(8, 2)),  # no convolution
        (nn.Conv2d(1, 2, 3, stride=2), *end),
        (nn.Conv2d(1, 2, 3, dilation=2), *end),
        (nn.Conv2d(2, 2, 3, groups=2), *end),
        (nn.Conv2d(1, 2, 3, padding="same"), *end),
        (nn.Conv2d(1, 2, 1, padding=1), *end),
        (nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), *end),
        (convolution, nn.GroupNorm(1, 2), *end),
        (convolution, nn.BatchNorm2d(2), *end),
        (convolution, nn.MaxPool2d(3), *end),
        (convolution, nn.AvgPool2d(2, ceil_mode=True), *end),
        (convolution, nn.Dropout(), *end),
        (nn.Conv2d(1, 1, 3), nn.Conv2d(1, 1, 3).requires_grad_(False), *end),
    ):
        assert not StackedConvolutions.supports(nn.Sequential(*layers))
    twice = nn.ReLU()
    assert not StackedConvolutions.supports(nn.Sequential(convolution, twice, *end, twice))
