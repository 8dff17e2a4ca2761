"""What can be told of a network by looking at it."""

import pytest
from torch import nn

from overheard.learning.architecture import (
    draws_at_random,
    embeds_tokens,
    is_chain_of_linear,
)
from tests.learning.cases import CONVOLUTIONS, MLP, WORDS, dropping


def test_tells_dropout_and_tables_and_chains_apart():
    models = [MLP(), CONVOLUTIONS(), WORDS(), dropping()]
    assert [draws_at_random(model) for model in models] == [False, False, False, True]
    assert [embeds_tokens(model) for model in models] == [False, False, True, False]
    assert [is_chain_of_linear(model) for model in models] == [True, False, False, False]


@pytest.mark.parametrize(
    "model",
    [
        nn.Linear(2, 2),
        nn.Sequential(),
        nn.Sequential(nn.ReLU(), nn.Linear(2, 2)),
        nn.Sequential(nn.Flatten(2), nn.Linear(2, 2)),
        nn.Sequential(nn.Linear(2, 2), nn.Softmax(1)),
    ],
)
def test_whatever_is_not_surely_a_chain_is_none(model):
    assert not is_chain_of_linear(model)
