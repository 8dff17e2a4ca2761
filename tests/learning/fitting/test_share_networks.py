"""Networks that are fitted to shares."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from overheard.core.seeds import Seed
from overheard.learning.fitting.share_network import (
    FitSchedule,
    fit_share_network,
    kl_divergence,
    predict_shares,
)
from overheard.questions.label_shares.attacks.ldia import build_ldia_network
from overheard.questions.label_shares.attacks.whispers import TemporalAttention


def linear() -> nn.Module:
    return nn.Linear(3, 3)


def planted(examples: int) -> torch.Tensor:
    return torch.randn(examples, 3, generator=Seed(1).generator())


class TestFit:
    SCHEDULE = FitSchedule(epochs=100, batch=16, rate=0.05)

    @pytest.mark.slow
    def test_learns_predictable_shares(self):
        inputs = planted(200)
        shares = (2 * inputs).softmax(1)
        network = fit_share_network(
            linear, inputs, shares, kl_divergence, self.SCHEDULE, Seed(0)
        )
        torch.testing.assert_close(
            predict_shares(network, inputs), shares.double(), atol=0.02, rtol=0
        )

    def test_predicts_about_the_mean_if_inputs_are_uninformative(self):
        shares = torch.tensor([[0.5, 0.3, 0.2]]).expand(100, 3)
        network = fit_share_network(
            linear, torch.zeros(100, 3), shares, kl_divergence, self.SCHEDULE, Seed(0)
        )
        torch.testing.assert_close(
            predict_shares(network, torch.zeros(1, 3)), shares[:1].double(), atol=0.01, rtol=0
        )

    def test_the_rate_drops_to_a_tenth_after_the_given_epoch(self):
        # Adam's first steps have about the length of the rate each: 1 epoch of 1 step at 0.1,
        # then 1 at 0.01.
        def moved(epochs: int) -> float:
            start, end = (
                fit_share_network(
                    lambda: nn.Linear(1, 2, bias=False),
                    torch.ones(4, 1),
                    torch.tensor([[1.0, 0.0]]).expand(4, 2),
                    kl_divergence,
                    FitSchedule(number, 4, 0.1, slow_after=1),
                    Seed(0),
                )
                for number in (1, epochs)
            )
            return float((end.weight - start.weight).abs().max())

        assert moved(2) == pytest.approx(0.01, rel=0.1)


def test_divergence_is_the_mean_in_nats():
    # Logits of 0 say 1/2 each. One client of (1, 0): ln 2. One of (1/2, 1/2): 0.
    shares = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    assert float(kl_divergence(torch.zeros(2, 2), shares)) == pytest.approx(
        0.6931 / 2, abs=1e-4
    )


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
