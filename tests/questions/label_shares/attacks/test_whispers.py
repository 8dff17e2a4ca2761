"""Whispers: size estimates, selected virtual clients, and claims over rounds."""

from dataclasses import replace

import pytest
import torch

from overheard.core.knowledge import Prior
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.seeds import Seed
from overheard.questions.label_shares.attacks.whispers import (
    FEWEST_TRAINING_CLIENTS,
    REPLICATES,
    TemporalAttention,
    Whispers,
    nearest_half_octave,
    select_training_clients,
    squared_error,
    virtual_update_norms,
)
from overheard.simulation.target_groups import TargetGroup
from overheard.testing.planted_labels import CLASSES, SKEWED, blobs
from tests.questions.label_shares.simulated_view import simulate_view

ONE = (client(0),)


@pytest.fixture(scope="module")
def knowledge(leaky):
    """Knowledge with ten held-out examples per class instead of the two of `leaky`."""
    few = replace(leaky.knowledge.compute, virtual_clients=128)
    auxiliary = blobs((50,) * CLASSES, Seed(99))
    return replace(leaky.knowledge, auxiliary=auxiliary, compute=few)


class TestTeachers:
    def test_half_octaves_are_powers_of_the_square_root_of_2(self):
        # 2^4.5 = 22.6, 2^5 = 32, 2^5.5 = 45.3: 40 is nearer to 45.3 on a log scale.
        sizes = (1.0, 2.0, 4.0, 23.0, 32.0, 40.0)
        assert list(map(nearest_half_octave, sizes)) == [0, 2, 4, 9, 10, 11]

    def test_selects_clients_within_the_size_ratio(self):
        # About 32: 22.6 to 45.3.
        sizes = torch.tensor([10, 23, 32, 45, 46] * FEWEST_TRAINING_CLIENTS).float()
        chosen = sizes[select_training_clients(sizes, 10, 1.0)]
        assert set(chosen.tolist()) == {23, 32, 45}
        assert len(chosen) == 3 * FEWEST_TRAINING_CLIENTS

    def test_selects_the_nearest_if_too_few_are_within_the_ratio(self):
        sizes = torch.cat([torch.full((150,), 32.0), torch.arange(100, 900)])
        chosen = sizes[select_training_clients(sizes, 10, 1.0)]
        assert len(chosen) == FEWEST_TRAINING_CLIENTS
        assert float(chosen.max()) == 100 + FEWEST_TRAINING_CLIENTS - 150 - 1

    def test_a_target_of_another_size_has_as_many_clients_as_in_the_paper(self):
        # 900 of 1,200 train the network, although none is near 2^5.
        chosen = select_training_clients(torch.full((1200,), 4000.0), 10, 0.75)
        assert chosen.tolist() == list(range(900))


def test_squared_errors_are_averaged_over_classes():
    # Logits of 0 give 1/2 each: (0.3^2 + 0.3^2) / 2.
    shares = torch.tensor([[0.8, 0.2]])
    assert float(squared_error(torch.zeros(1, 2), shares)) == pytest.approx(0.09)


class TestSize:
    def norms(self, leaky, kind, size):
        view = leaky.transcript.seen_by(SERVER)
        return virtual_update_norms(
            view, leaky.knowledge, TargetGroup(ONE, (0,), None), kind, size
        )

    def test_larger_virtual_clients_have_longer_updates(self, leaky):
        lengths = [float(self.norms(leaky, "even", size)[0]) for size in (8, 40, 200)]
        assert lengths == sorted(lengths)
        assert len(set(lengths)) == 3

    def test_bisection_uses_several_label_distributions(self, leaky):
        norms = self.norms(leaky, "prior", 40)
        assert len(norms) == REPLICATES
        assert len(set(norms.tolist())) == REPLICATES

    def claim(self, leaky, told, **settings):
        view = simulate_view([(0, 1, 2, 3)], with_sizes=told)
        knowledge = replace(leaky.knowledge, prior=Prior(sizes=(10, 160)))
        attack = Whispers(guess=20, epochs=20, **settings)
        return attack.infer(view, ONE, knowledge, Seed(0))[client(0)]

    @pytest.mark.slow
    def test_estimates_a_hidden_size_by_doubling(self, leaky):
        hidden = self.claim(leaky, told=False).size
        assert hidden == self.claim(leaky, told=True, size="doubling").size
        # 20 * 2^k, within two octaves of the true 40; of uneven make-up, so rather too large.
        assert hidden.examples in (20, 40, 80, 160)
        assert hidden.low is None

    def test_bisection_bounds_the_size(self, leaky):
        size = self.claim(leaky, told=False, size="bisection").size
        assert size.low <= 40 <= size.high
        assert size.high / size.low > 1


class TestOverRounds:
    @pytest.mark.slow
    def test_finds_the_shares_of_targets_with_different_observed_rounds(self, knowledge):
        view = simulate_view([(0, 1, 2, 3), (0, 1, 2, 3), (0, 1)])
        targets = [client(0), client(3)]
        claims = Whispers().infer(view, targets, knowledge, Seed(0))
        for place in (0, 3):
            true = torch.tensor(SKEWED[place]) / 40
            # Even shares have an error of 2 * (0.8 - 0.25) = 1.1.
            assert float((claims[client(place)].shares - true).abs().sum()) < 0.6

    @pytest.mark.slow
    def test_other_losses_give_other_claims(self, knowledge):
        view = simulate_view([(0, 1, 2, 3)])
        attacks = (Whispers(loss=loss, epochs=50) for loss in ("squared", "divergence"))
        claims = [a.infer(view, ONE, knowledge, Seed(0))[client(0)].shares for a in attacks]
        assert [int(claim.argmax()) for claim in claims] == [0, 0]
        assert not torch.equal(*claims)

    def test_a_rate_that_drops_gives_another_claim(self, knowledge):
        view = simulate_view([(0, 1, 2, 3)])
        attacks = (Whispers(epochs=5, slow_after=epoch) for epoch in (None, 1))
        claims = [a.infer(view, ONE, knowledge, Seed(0))[client(0)].shares for a in attacks]
        assert not torch.equal(*claims)

    @pytest.mark.slow
    def test_claims_the_pooled_shares_and_total_size_of_a_cohort(self, knowledge):
        view = simulate_view([(0, 1, 2, 3)], aggregated=True)
        knowledge = replace(knowledge, compute=replace(knowledge.compute, virtual_clients=64))
        claim = Whispers().infer(view, [COHORT], knowledge, Seed(0))[COHORT]
        # Together the four hold every class equally often: 160 examples.
        assert float((claim.shares - 0.25).abs().sum()) < 0.3
        assert claim.size.examples == 160

    def test_compares_a_cohort_of_hidden_size_with_virtual_cohorts(self, knowledge):
        view = simulate_view([(0, 1, 2, 3)], with_sizes=False, aggregated=True)
        means = replace(knowledge.compute, virtual_clients=32)
        knowledge = replace(knowledge, prior=Prior(sizes=(10, 160)), compute=means)
        claim = Whispers(guess=20, epochs=5).infer(view, [COHORT], knowledge, Seed(0))[COHORT]
        assert claim.size.examples in (80, 160, 320)


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
