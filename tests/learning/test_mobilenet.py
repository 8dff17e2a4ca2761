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
