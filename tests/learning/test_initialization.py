"""Initial weights depend only on the seed."""

import pytest
import torch
from torch import nn

from overheard.core.errors import PlanError
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


def test_refuses_running_statistics_and_says_what_to_use_instead():
    def normed():
        return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))

    with pytest.raises(PlanError, match=r"1\.running_mean.*GroupNorm"):
        initial_weights(normed, Seed(1))
