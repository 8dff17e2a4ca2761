"""Ensembles: each network has its own weights, rows and inputs."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from overheard.core.seeds import Seed
from overheard.learning.fitting.ensembles import (
    CROSS_ENTROPY_WEIGHT,
    DeepSetEnsemble,
    EnsembleLinear,
    EnsembleTraining,
    MlpEnsemble,
    NetworkEnsemble,
    _rate_factor,
    dropout_factors,
    load_ensemble_weights,
    train_ensemble,
)
from overheard.learning.seeding import seeded

CLIENTS, CLASSES, NUMBERS = 60, 3, 5
ROWS = [torch.arange(0, 40), torch.arange(20, 60)]
SHORT = EnsembleTraining(steps=30, batch=16)


def shares_of_all() -> Tensor:
    return torch.from_numpy(Seed(0).numpy().dirichlet([0.5] * CLASSES, CLIENTS)).float()


def tokens_of_all() -> Tensor:
    """The share of each class and four uninformative numbers, equal for both networks."""
    noise = torch.randn(CLIENTS, CLASSES, NUMBERS - 1, generator=Seed(1).generator())
    tokens = torch.cat((shares_of_all()[:, :, None], noise), 2)
    return torch.stack((tokens, tokens))


def of_tokens(seed: int = 2) -> DeepSetEnsemble:
    with seeded(Seed(seed)):
        return DeepSetEnsemble(2, CLASSES, NUMBERS, 16, 0.1)


def of_numbers(seed: int = 2) -> MlpEnsemble:
    with seeded(Seed(seed)):
        return MlpEnsemble(2, CLASSES, CLASSES * NUMBERS, 16)


def trained(
    networks: NetworkEnsemble, inputs: Tensor, shares: Tensor, rows=ROWS, training=SHORT
) -> Tensor:
    """The shares that trained networks predict for every client."""
    train_ensemble(networks, inputs, shares, rows, training, Seed(4))
    return networks(inputs)


KINDS = pytest.mark.parametrize(
    ("make", "inputs"),
    [(of_tokens, tokens_of_all()), (of_numbers, tokens_of_all().flatten(2))],
    ids=["tokens", "numbers"],
)


class TestEnsembleLinear:
    def layer(self) -> EnsembleLinear:
        with seeded(Seed(5)):
            return EnsembleLinear(2, 4, 3)

    @pytest.mark.parametrize("many", [(7,), (7, 3), (2, 3, 5)])
    def test_each_network_equals_a_separate_linear_layer(self, many):
        layer = self.layer()
        numbers = torch.randn(2, *many, 4, generator=Seed(6).generator())
        weights = dict(layer.named_parameters())
        mapped = layer(numbers)
        assert mapped.shape == (2, *many, 3)
        for place in range(2):
            alone = nn.functional.linear(
                numbers[place], weights["_weight"][place].T, weights["_bias"][place, 0]
            )
            torch.testing.assert_close(mapped[place], alone)


class TestDeepSetEnsemble:
    @settings(max_examples=20)
    @given(st.permutations(range(CLASSES)))
    def test_without_embeddings_permuting_classes_permutes_the_prediction(self, order):
        networks = of_tokens().eval()
        with torch.no_grad():
            dict(networks.named_parameters())["_names"].zero_()
            inputs = tokens_of_all()
            predicted = networks(inputs)
            renamed = networks(inputs[:, :, order])
        torch.testing.assert_close(renamed, predicted[:, :, order], rtol=1e-4, atol=1e-5)


def with_dropout(
    networks: NetworkEnsemble, inputs: Tensor, noise: np.random.Generator
) -> Tensor:
    """Return the logits in training, layer by layer."""
    if isinstance(networks, MlpEnsemble):
        return networks(inputs)
    layers = dict(networks.named_children())
    hidden = (layers["_first"](inputs) + layers["_name"](networks._names)).relu()
    mean = layers["_second_mean"](hidden.mean(2, keepdim=True))
    hidden = (layers["_second"](hidden) + mean).relu()
    hidden = hidden * dropout_factors(hidden, 0.1, noise)
    mean = layers["_third_mean"](hidden.mean(2, keepdim=True))
    return layers["_last"]((layers["_third"](hidden) + mean).relu())[..., 0]


@pytest.mark.slow
@KINDS
def test_trains_as_torchs_adamw_does_on_the_stated_loss(make, inputs):
    inputs, shares, training = inputs.double(), shares_of_all().double(), SHORT
    networks, reference = make().double(), make().double()
    train_ensemble(networks, inputs, shares, ROWS, training, Seed(4))
    draws, noise = Seed(4).generator(), Seed(4).child("dropout").numpy()
    optimizer = torch.optim.AdamW(reference.parameters(), weight_decay=training.weight_decay)
    for step in range(training.steps):
        optimizer.param_groups[0]["lr"] = training.rate * _rate_factor(step / training.steps)
        picks = [rows[torch.randint(len(rows), (16,), generator=draws)] for rows in ROWS]
        batches = torch.stack([inputs[network, rows] for network, rows in enumerate(picks)])
        logits = with_dropout(reference, batches, noise)
        losses = [
            (own.softmax(1) - shares[rows]).abs().sum(1).mean()
            + CROSS_ENTROPY_WEIGHT * nn.functional.cross_entropy(own, shares[rows])
            for own, rows in zip(logits, picks, strict=True)
        ]
        optimizer.zero_grad()
        sum(losses).backward()
        optimizer.step()
    # Of the last bias, which moves all logits alike, Adam enlarges the rounding.
    shares, expected = (model(inputs).softmax(2) for model in (networks, reference))
    torch.testing.assert_close(shares, expected.detach(), rtol=0, atol=1e-11)


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5])
def test_dropout_keeps_the_mean_and_drops_at_its_rate(rate):
    factors = dropout_factors(torch.zeros(3, 33_333), rate, Seed(0).numpy())
    expected = [0.0, 1 / (1 - rate)] if rate else [1.0]
    assert factors.unique().tolist() == pytest.approx(expected)
    # Three standard deviations of the share that is dropped.
    assert float((factors == 0).double().mean()) == pytest.approx(
        rate, abs=3 * (rate * (1 - rate) / factors.numel()) ** 0.5
    )


@KINDS
class TestTraining:
    def test_learns_predictable_shares(self, make, inputs):
        shares = shares_of_all()
        predicted = trained(make(), inputs, shares, training=EnsembleTraining(steps=200))
        misses = (predicted.softmax(2) - shares).abs().sum(2)  # (networks, clients)
        uniform = (shares - 1 / CLASSES).abs().sum(1)
        for own, missed in zip(ROWS, misses, strict=True):
            assert float(missed[own].mean()) < 0.25 * float(uniform[own].mean())

    def test_a_network_does_not_depend_on_the_inputs_of_another(self, make, inputs):
        other = torch.stack((inputs[0], -inputs[1]))
        shares = shares_of_all()
        one, two = (trained(make(), given, shares) for given in (inputs, other))
        assert torch.equal(one[0], two[0])
        assert not torch.equal(one[1], two[1])

    def test_a_network_does_not_depend_on_clients_outside_its_rows(self, make, inputs):
        shares, other = shares_of_all(), shares_of_all()
        # The last 20 are rows of the second network only.
        other[40:] = other[40:].roll(1, 1)
        one, two = (trained(make(), inputs, true) for true in (shares, other))
        assert torch.equal(one[0], two[0])
        assert not torch.equal(one[1], two[1])

    def test_uses_one_thread_and_restores_the_number(self, make, inputs):
        before = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            two = trained(make(), inputs, shares_of_all())
            assert torch.get_num_threads() == 2
            torch.set_num_threads(1)
            assert torch.equal(trained(make(), inputs, shares_of_all()), two)
        finally:
            torch.set_num_threads(before)


@KINDS
def test_stored_weights_restore_the_same_networks(make, inputs):
    networks, fresh = make().eval(), make(seed=7)
    kept = networks.state_dict(prefix="ours/") | make(seed=8).state_dict(prefix="others/")
    load_ensemble_weights(fresh, kept, "ours/")
    assert torch.equal(fresh(inputs), networks(inputs))
    assert not fresh(inputs).requires_grad
