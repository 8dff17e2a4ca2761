"""Properties of networks."""

import pytest
from torch import nn

from overheard.learning.architecture import (
    draws_at_random,
    embeds_tokens,
    is_chain_of_linear,
    is_recurrent,
)
from tests.learning.cases import CONVOLUTIONS, MLP, READING, WORDS, dropping


@pytest.mark.parametrize(
    ("build", "found"),
    [
        (MLP, {is_chain_of_linear}),
        (CONVOLUTIONS, set()),
        (WORDS, {embeds_tokens}),
        (READING, {embeds_tokens, is_recurrent}),
        (dropping, {draws_at_random}),
        (lambda: nn.GRU(2, 2), {is_recurrent}),
    ],
)
def test_detects_dropout_embeddings_recurrence_and_plain_mlps(build, found):
    checks = (draws_at_random, embeds_tokens, is_recurrent, is_chain_of_linear)
    assert {one for one in checks if one(build())} == found


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
def test_other_networks_are_no_plain_mlps(model):
    assert not is_chain_of_linear(model)
