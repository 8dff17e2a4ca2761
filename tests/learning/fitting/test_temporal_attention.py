"""Attention over rounds, computed by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.learning.fitting.temporal_attention import AttentiveRecurrence, TemporalAttention
from overheard.learning.seeding import seeded

STATES = torch.tensor([[[0.0, 1.0], [0.5, -1.0], [1.0, 3.0]]])


@pytest.fixture
def attention() -> TemporalAttention:
    """W = identity, b = 0."""
    attention = TemporalAttention(2)
    with torch.no_grad():
        attention.bend.weight.copy_(torch.eye(2))
        attention.bend.bias.zero_()
    return attention


def test_equal_scores_give_the_mean_of_the_states(attention):
    with torch.no_grad():
        attention.score.weight.zero_()
        torch.testing.assert_close(attention(STATES), torch.tensor([[0.5, 1.0]]))


def test_states_are_weighted_by_the_softmax_of_their_scores(attention):
    # v = (1, 0): e = tanh(0), tanh(0.5), tanh(1) = 0, 0.46212, 0.76159; e^e = 1, 1.58743,
    # 2.14169, sum 4.72912; weights 0.21146, 0.33567, 0.45287.
    # c = (0.33567 / 2 + 0.45287, 0.21146 - 0.33567 + 3 * 0.45287) = (0.62071, 1.23441).
    with torch.no_grad():
        attention.score.weight.copy_(torch.tensor([[1.0, 0.0]]))
        torch.testing.assert_close(
            attention(STATES), torch.tensor([[0.62071, 1.23441]]), atol=1e-4, rtol=0
        )


@given(st.integers(1, 6), st.integers(1, 4), st.floats(-5, 5))
def test_the_mean_is_within_the_range_of_the_states(rounds, clients, scale):
    with seeded(Seed(rounds)):
        attention = TemporalAttention(3)
    states = scale * torch.randn(clients, rounds, 3, generator=Seed(clients).generator())
    with torch.no_grad():
        mean = attention(states)
    assert bool((mean <= states.amax(1) + 1e-4).all())
    assert bool((mean >= states.amin(1) - 1e-4).all())


def test_the_recurrence_depends_on_the_order_of_rounds():
    with seeded(Seed(0)):
        network = AttentiveRecurrence(features=4, classes=3)
    features = torch.randn(2, 5, 4, generator=Seed(1).generator())
    with torch.no_grad():
        there, back = network(features), network(features.flip(1))
    assert there.shape == (2, 3)
    assert float((there - back).abs().max()) > 1e-3
