"""Merged instance norms equal torch's layers, and other layers are left alone."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from overheard.learning.engines.instance_norm_block import (
    BLOCK_BYTES,
    InstanceNormBlock,
    use_instance_norm_blocks,
)

CHANNELS = 20
"""More than twice the 9 inputs of a pixel, so that the first convolution is merged too."""

TAILS = {
    "alone": [],
    "relu": [nn.ReLU(inplace=True)],
    "relu and pool": [nn.ReLU(inplace=True), nn.AvgPool2d(2)],
    "pool": [nn.AvgPool2d(2)],
}


def network(tail, *, bias=True, dtype=torch.float64):
    """Two convolutions, each with an instance norm and these layers after it."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, CHANNELS, 3, padding=1, stride=2, bias=bias),
        nn.GroupNorm(CHANNELS, CHANNELS),
        *deepcopy(tail),
        nn.Conv2d(CHANNELS, 4, 3, padding=1),
        nn.GroupNorm(4, 4),
        *deepcopy(tail),
        nn.Flatten(),
    ).to(dtype)
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return model


def merged(model):
    copy = deepcopy(model)
    use_instance_norm_blocks(copy)
    return copy


def slopes(model, images):
    """The outputs, and the gradients of all parameters and, if asked for, of the images."""
    outputs = model(images)
    weights = torch.arange(outputs.numel(), dtype=outputs.dtype).view_as(outputs).cos()
    named = [*model.parameters(), *([images] if images.requires_grad else [])]
    return outputs, torch.autograd.grad((outputs * weights).sum(), named)


@pytest.mark.parametrize("of_inputs", [False, True], ids=["first", "inner"])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("side", [16, 27])
@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS.keys())
def test_values_and_gradients_equal_those_of_torch(tail, side, bias, of_inputs):
    # 27 pixels a side become 14, and then 7 or, after a pool, 7 and 4: odd sides lose a row.
    plain, images = network(tail, bias=bias), torch.randn(5, 1, side, side).double()
    images.requires_grad_(of_inputs)
    expected, gradients = slopes(plain, images)
    outputs, ours = slopes(merged(plain), images)
    torch.testing.assert_close(outputs, expected, atol=1e-12, rtol=0)
    for one, other in zip(ours, gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-11, rtol=1e-12)


def test_more_images_than_a_block_holds_equal_those_of_torch():
    # 64 x 64 pixels of 20 channels are 655 kB in float64: one image a block.
    assert 64 * 64 * CHANNELS * 8 > BLOCK_BYTES
    model = nn.Sequential(nn.GroupNorm(CHANNELS, CHANNELS), nn.ReLU()).double()
    images = torch.randn(3, CHANNELS, 64, 64).double()
    torch.testing.assert_close(merged(model)(images), model(images), atol=1e-12, rtol=0)


def test_float32_is_as_exact_as_torch():
    plain, images = network(TAILS["relu and pool"]), torch.randn(5, 1, 16, 16)
    exact, _ = slopes(plain, images.double())
    for model in (plain.float(), merged(plain.float())):
        assert float((model(images) - exact).detach().abs().max()) < 2e-4


def test_names_of_parameters_stay():
    plain = network(TAILS["relu and pool"])
    block = merged(plain)
    assert [name for name, _ in block.named_parameters()] == [
        name for name, _ in plain.named_parameters()
    ]
    assert isinstance(block[1], InstanceNormBlock)
    assert not any(isinstance(layer, (nn.ReLU, nn.AvgPool2d)) for layer in block)


@pytest.mark.parametrize(
    "layers",
    [
        [nn.GroupNorm(2, 4), nn.ReLU()],
        [nn.GroupNorm(4, 4, affine=False), nn.ReLU()],
        [nn.ReLU(), nn.AvgPool2d(2)],
    ],
    ids=["groups of two", "without weights", "no norm"],
)
def test_other_layers_are_left_alone(layers):
    model = nn.Sequential(*layers)
    assert str(merged(model)) == str(model)


@pytest.mark.parametrize(
    "pool",
    [nn.AvgPool2d(3), nn.AvgPool2d(2, 1), nn.AvgPool2d(2, padding=1), nn.MaxPool2d(2)],
    ids=str,
)
def test_other_pools_stay_beside_the_block(pool):
    model = nn.Sequential(nn.GroupNorm(4, 4), nn.ReLU(), pool).double()
    images = torch.randn(2, 4, 9, 9).double()
    assert type(merged(model)[2]) is type(pool)
    torch.testing.assert_close(merged(model)(images), model(images), atol=1e-12, rtol=0)


def test_numbers_that_are_no_images_are_normed_by_torch():
    model = nn.Sequential(nn.GroupNorm(4, 4), nn.ReLU())
    rows = torch.randn(3, 4, 5)
    assert torch.equal(merged(model)(rows), model(rows))


def test_a_large_kernel_is_not_merged():
    # 9 x 3 inputs of a pixel, and 20 outputs: the patches would be larger than the outputs.
    model = nn.Sequential(nn.Conv2d(3, CHANNELS, 3), nn.GroupNorm(CHANNELS, CHANNELS))
    assert type(merged(model)[0]) is nn.Conv2d


def test_a_relu_that_stands_at_two_places_stays_before_both_pools():
    relu = nn.ReLU()
    model = nn.Sequential(
        nn.Conv2d(1, CHANNELS, 3, bias=False),
        nn.GroupNorm(CHANNELS, CHANNELS),
        relu,
        nn.AvgPool2d(2),
        nn.Conv2d(CHANNELS, 4, 3),
        nn.GroupNorm(4, 4),
        relu,
        nn.AvgPool2d(2),
    ).double()
    images = torch.randn(3, 1, 16, 16, dtype=torch.float64)
    torch.testing.assert_close(merged(model)(images), model(images))
