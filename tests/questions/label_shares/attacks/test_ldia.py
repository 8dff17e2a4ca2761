"""LDIA's losses worked out by hand, and its claims."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.parties import COHORT, client
from overheard.core.seeds import Seed
from overheard.learning.fitting.share_network import kl_divergence
from overheard.questions.label_shares.attacks.ldia import (
    Ldia,
    _stack_images,
    published_loss,
    rounded_shares,
)
from overheard.testing.planted_labels import SKEWED
from tests.questions.label_shares.simulated_view import simulate_view

pytestmark = pytest.mark.slow

TRUE = torch.tensor([[0.7, 0.3]])


def logits_of(*shares: float) -> torch.Tensor:
    return torch.tensor([shares]).log()


class TestLoss:
    def test_the_published_loss_uses_probabilities_instead_of_logarithms(self):
        # 0.7 (ln 0.7 - 0.6) = 0.7 * (-0.35667 - 0.6) = -0.66967; 0.3 (ln 0.3 - 0.4) =
        # 0.3 * (-1.20397 - 0.4) = -0.48119; their mean is -0.57543.
        assert float(published_loss(logits_of(0.6, 0.4), TRUE)) == pytest.approx(
            -0.57543, abs=1e-4
        )

    def test_the_published_loss_prefers_the_largest_class(self):
        wholly, truly = (
            float(published_loss(logits_of(*shares), TRUE))
            for shares in ((1 - 1e-6, 1e-6), (0.7, 0.3))
        )
        assert wholly < truly
        assert float(kl_divergence(logits_of(0.7, 0.3), TRUE)) == pytest.approx(0, abs=1e-6)

    def test_the_gradient_ignores_rounding(self):
        logits = logits_of(0.6, 0.4).requires_grad_(True)
        published_loss(logits, TRUE).backward()
        # d/dz_0 of -(0.7 p_0 + 0.3 p_1) / 2 = -(0.7 - 0.3) p_0 p_1 / 2 = -0.4 * 0.24 / 2.
        torch.testing.assert_close(logits.grad, torch.tensor([[-0.048, 0.048]]))


class TestRoundedShares:
    def test_the_last_class_gets_the_rest(self):
        shares = torch.tensor([[1 / 3, 1 / 3, 1 / 3], [0.004, 0.004, 0.992]])
        torch.testing.assert_close(
            rounded_shares(shares), torch.tensor([[0.33, 0.33, 0.34], [0.0, 0.0, 1.0]])
        )

    @given(st.lists(st.integers(0, 1000), min_size=2, max_size=12).filter(any))
    def test_rounded_shares_are_close_and_not_negative(self, counts):
        shares = torch.tensor([counts], dtype=torch.float64)
        shares = shares / shares.sum()
        rounded = rounded_shares(shares)
        assert float(rounded.min()) >= 0
        assert float((rounded - shares)[:, :-1].abs().max()) <= 0.005 + 1e-9


def test_images_leave_out_the_bias_and_have_a_row_per_round():
    # (clients, rounds, classes, features + 1): one client, two rounds, two classes.
    change = torch.arange(12.0).reshape(1, 2, 2, 3)
    assert _stack_images(change).tolist() == [[[0, 1, 3, 4], [6, 7, 9, 10]]]


@pytest.fixture(scope="module")
def claims(leaky):
    """Claims for client 0, observed in five rounds (an image), and client 3, in two (none)."""
    view = simulate_view([(0, 1, 2, 3)] * 2 + [(0, 1)] * 3)
    few = replace(leaky.knowledge.compute, virtual_clients=96)
    knowledge = replace(leaky.knowledge, compute=few)
    return Ldia().infer(view, [client(0), client(3)], knowledge, Seed(0))


class TestOverRounds:
    @pytest.mark.parametrize("place", [0, 3])
    def test_finds_the_shares_of_targets_with_different_observed_rounds(self, claims, place):
        true = torch.tensor(SKEWED[place]) / 40
        # Even shares have an error of 2 * (0.8 - 0.25) = 1.1.
        assert float((claims[client(place)].shares - true).abs().sum()) < 0.35

    def test_reads_the_aggregate_of_a_cohort(self, leaky):
        view = simulate_view([(0, 1, 2, 3)], aggregated=True)
        few = replace(leaky.knowledge.compute, virtual_clients=64)
        knowledge = replace(leaky.knowledge, compute=few)
        claim = Ldia().infer(view, [COHORT], knowledge, Seed(0))[COHORT]
        # Together the clients hold every class equally often.
        # The shares of one client, such as (0.8, 0.1, 0.05, 0.05), have an error of 1.1.
        assert float((claim.shares - 0.25).abs().sum()) < 0.5
