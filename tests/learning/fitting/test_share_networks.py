"""Networks that are fitted to shares."""

import pytest
import torch
from torch import nn

from overheard.core.seeds import Seed
from overheard.learning.fitting.share_network import (
    FitSchedule,
    fit_share_network,
    kl_divergence,
    predict_shares,
)


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
