"""MobileNet: the published number of weights, and small images."""

from functools import partial

import pytest
import torch
from torch import nn

from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.initialization import initial_weights
from overheard.learning.models.mobilenet import MobileNet

TEN = tuple("0123456789")


def convolutions(model: MobileNet, task: Task) -> list[nn.Conv2d]:
    return [part for part in model.build(task).modules() if isinstance(part, nn.Conv2d)]


def test_has_the_weights_of_the_published_network():
    # First convolution 32 x 27; blocks 9 c + c d for c -> d, in sum 44,640 + 3,139,584; two
    # numbers of norm for each of 10,944 channels; classes 1,025 x 1,000. Together "4.2 million"
    # (Howard et al. 2017, Table 8).
    task = Task((3, 224, 224), tuple(str(number) for number in range(1000)))
    weights = initial_weights(partial(MobileNet().build, task), Seed(0))
    assert sum(weight.numel() for weight in weights.values()) == 4_231_976


@pytest.mark.parametrize(("side", "left"), [(28, 2), (32, 2), (48, 3), (64, 2), (224, 7)])
def test_the_first_convolution_keeps_the_size_of_small_images(side, left):
    # 28: 28, 14, 7, 4, 2 pixels a side. 64: 32, 16, 8, 4, 2.
    network = MobileNet(alpha=0.25).build(Task((1, side, side), TEN))
    assert isinstance(network, nn.Sequential)
    with torch.no_grad():
        maps = network[:-3](torch.zeros(2, 1, side, side))
    assert maps.shape == (2, 256, left, left)


def test_the_width_multiplier_applies_to_every_layer():
    task = Task((1, 28, 28), TEN)
    whole, half = convolutions(MobileNet(), task), convolutions(MobileNet(alpha=0.5), task)
    assert len(whole) == 27
    pairs = zip(whole, half, strict=True)
    assert all(wide.out_channels == 2 * thin.out_channels for wide, thin in pairs)


@pytest.mark.parametrize("alpha", [0.01, 0.3, 0.7, 1.0])
def test_every_norm_group_has_several_channels(alpha):
    # Alone, an image twice as bright would look the same in each channel of the first layer.
    network = MobileNet(alpha=alpha).build(Task((1, 28, 28), TEN))
    norms = [part for part in network.modules() if isinstance(part, nn.GroupNorm)]
    assert len(norms) == 27
    assert min(norm.num_channels // norm.num_groups for norm in norms) >= 8
    assert max(norm.num_groups for norm in norms) <= 32


def test_every_second_convolution_is_depthwise():
    separate = [
        layer.groups == layer.in_channels
        for layer in convolutions(MobileNet(alpha=0.25), Task((1, 28, 28), TEN))[1:]
    ]
    assert separate == [True, False] * 13


@pytest.mark.parametrize("alpha", [0.0, -0.5, 1.5, float("nan")])
def test_refuses_a_width_multiplier_outside_its_range(alpha):
    with pytest.raises(ValueError, match="alpha"):
        MobileNet(alpha=alpha)
