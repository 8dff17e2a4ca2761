"""Initial weights depend only on the seed."""

import torch

from overheard.core.seeds import Seed
from overheard.learning.initialization import initial_weights
from tests.learning.cases import MLP, same_bits


def test_initial_weights_do_not_depend_on_earlier_draws():
    first = initial_weights(MLP, Seed(1))
    torch.rand(5)
    assert same_bits(initial_weights(MLP, Seed(1)), first)
    assert not same_bits(initial_weights(MLP, Seed(2)), first)


def test_restores_the_global_generator():
    before = torch.get_rng_state()
    initial_weights(MLP, Seed(1))
    assert torch.equal(torch.get_rng_state(), before)
