"""Attention over rounds, computed by hand."""

import pytest
import torch

from overheard.learning.fitting.temporal_attention import TemporalAttention

STATES = torch.tensor([[[0.0, 1.0], [0.5, -1.0], [1.0, 3.0]]])


@pytest.fixture
def attention() -> TemporalAttention:
    """W = identity, b = 0."""
    attention = TemporalAttention(2)
    with torch.no_grad():
        attention.bend.weight.copy_(torch.eye(2))
        attention.bend.bias.zero_()
    return attention


def test_states_are_weighted_by_the_softmax_of_their_scores(attention):
    # v = (1, 0): e = tanh(0), tanh(0.5), tanh(1) = 0, 0.46212, 0.76159; e^e = 1, 1.58743,
    # 2.14169, sum 4.72912; weights 0.21146, 0.33567, 0.45287.
    # c = (0.33567 / 2 + 0.45287, 0.21146 - 0.33567 + 3 * 0.45287) = (0.62071, 1.23441).
    with torch.no_grad():
        attention.score.weight.copy_(torch.tensor([[1.0, 0.0]]))
        torch.testing.assert_close(
            attention(STATES), torch.tensor([[0.62071, 1.23441]]), atol=1e-4, rtol=0
        )
