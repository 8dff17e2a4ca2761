"""Initial weights depend only on the seed."""

import torch
from torch import nn

from overheard.core.seeds import Seed
from overheard.learning.initialization import initial_weights, model_structure
from tests.learning.cases import MLP, same_bits


def test_initial_weights_do_not_depend_on_earlier_draws():
    first = initial_weights(MLP, Seed(1))
    torch.rand(5)
    assert same_bits(initial_weights(MLP, Seed(1)), first)
    assert not same_bits(initial_weights(MLP, Seed(2)), first)


def test_a_structure_has_the_shapes_of_the_model_and_no_numbers():
    structure = model_structure(MLP)
    whole = initial_weights(MLP, Seed(0))
    assert {n: one.shape for n, one in structure.named_parameters()} == {
        name: one.shape for name, one in whole.items()
    }
    assert all(one.is_meta for one in structure.parameters())


def test_a_model_that_needs_its_numbers_is_built_as_usual():
    def build() -> nn.Module:
        model = nn.Linear(2, 3)
        model.scale = float(model.weight.sum())
        return model

    assert not model_structure(build).weight.is_meta
