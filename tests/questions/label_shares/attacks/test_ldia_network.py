"""The LDIA network: published layers, and logits for any size of image."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from overheard.questions.label_shares.attacks.ldia import build_ldia_network


def convolutions(network: nn.Module) -> list[nn.Conv2d]:
    return [module for module in network if isinstance(module, nn.Conv2d)]


def linear_inputs(network: nn.Module) -> list[int]:
    return [module.in_features for module in network if isinstance(module, nn.Linear)]


def test_ten_rounds_of_ten_classes_and_64_features_use_both_convolutions():
    # 640 / 10 = 64: ratio 60, kernel 5 x 300. Rounds: (10 + 10 - 5) // 4 + 1 = 4, pooled 2,
    # pooled 1. Width: (640 + 10 - 300) // 4 + 1 = 88, pooled 44, pooled 22. 192 * 22 = 4224.
    network = build_ldia_network(10, 640, 10)
    assert [one.kernel_size for one in convolutions(network)] == [(5, 300), (5, 5)]
    assert linear_inputs(network) == [4224, 512, 64]


@given(st.integers(1, 12), st.integers(2, 300), st.integers(2, 5))
def test_returns_logits_for_every_size_of_image(rounds, width, classes):
    network = build_ldia_network(rounds, width, classes)
    with torch.no_grad():
        assert network(torch.zeros(2, rounds, width)).shape == (2, classes)
