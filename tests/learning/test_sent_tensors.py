"""Trainable parameters and running statistics are sent; everything else stays."""

import torch
from torch import nn

from overheard.core.seeds import Seed
from overheard.learning.initialization import fresh_model, initial_weights
from overheard.learning.sent_tensors import (
    load_sent_tensors,
    sent_shapes,
    sent_tensors,
    unsent_tensors,
    without_negative_variances,
)
from tests.learning.cases import same_bits


def normed() -> nn.Module:
    """A network with a batch norm that has no parameters, between two layers."""
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3, affine=False), nn.Linear(3, 2))


class Adapted(nn.Module):
    """A frozen layer, a table that is not stored, and a trained last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(2, 3).requires_grad_(False)
        self.register_buffer("places", torch.randn(3), persistent=False)
        self.last = nn.Linear(3, 2)


def test_running_statistics_are_sent_in_the_place_of_their_layer_and_counters_stay():
    model = normed()
    assert sent_shapes(model) == {
        "0.weight": (3, 2),
        "0.bias": (3,),
        "1.running_mean": (3,),
        "1.running_var": (3,),
        "2.weight": (2, 3),
        "2.bias": (2,),
    }
    assert list(unsent_tensors(model)) == ["1.num_batches_tracked"]


def test_frozen_parameters_and_tables_that_are_not_stored_stay():
    assert list(sent_tensors(Adapted())) == ["last.weight", "last.bias"]
    assert list(unsent_tensors(Adapted())) == ["base.weight", "base.bias", "places"]


def test_what_stays_is_the_same_for_every_seed_and_what_is_sent_is_drawn():
    one, other = (fresh_model(Adapted, Seed(number)) for number in (1, 2))
    assert same_bits(unsent_tensors(one), unsent_tensors(other))
    assert same_bits(unsent_tensors(one), unsent_tensors(fresh_model(Adapted, Seed(0))))
    assert not same_bits(sent_tensors(one), sent_tensors(other))
    assert same_bits(initial_weights(Adapted, Seed(1)), sent_tensors(one))


def test_loading_takes_sent_statistics_and_leaves_those_that_are_not_sent():
    model = normed()
    parameters = {name: torch.full_like(one, 7.0) for name, one in model.named_parameters()}
    load_sent_tensors(model, parameters | {"1.running_mean": torch.ones(3)})
    state = model.state_dict()
    assert state["1.running_mean"].tolist() == [1, 1, 1]
    assert state["1.running_var"].tolist() == [1, 1, 1]  # as built
    assert state["0.bias"].tolist() == [7, 7, 7]


def test_a_variance_that_noise_made_negative_counts_as_0():
    noisy = {"1.running_var": torch.tensor([-0.5, 2.0]), "1.running_mean": -torch.ones(2)}
    kept = without_negative_variances(noisy)
    assert kept["1.running_var"].tolist() == [0, 2]
    assert kept["1.running_mean"].tolist() == [-1, -1]
    model = nn.BatchNorm1d(2, affine=False).eval()
    load_sent_tensors(model, {"running_var": noisy["1.running_var"]})
    assert bool(model(torch.ones(1, 2)).isfinite().all())
