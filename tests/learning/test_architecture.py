"""Properties of networks."""

import pytest
from torch import nn

from overheard.learning.architecture import (
    has_dropout,
    has_embedding,
    is_plain_mlp,
    is_recurrent,
)
from tests.learning.cases import CONVOLUTIONS, MLP, READING, WORDS, dropping


@pytest.mark.parametrize(
    ("build", "found"),
    [
        (MLP, {is_plain_mlp}),
        (CONVOLUTIONS, set()),
        (WORDS, {has_embedding}),
        (READING, {has_embedding, is_recurrent}),
        (dropping, {has_dropout}),
        (lambda: nn.GRU(2, 2), {is_recurrent}),
    ],
)
def test_detects_dropout_embeddings_recurrence_and_plain_mlps(build, found):
    checks = (has_dropout, has_embedding, is_recurrent, is_plain_mlp)
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
    assert not is_plain_mlp(model)
