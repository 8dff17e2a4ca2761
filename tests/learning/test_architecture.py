"""Properties of networks."""

import pytest
from torch import nn

from overheard.learning.architecture import (
    has_dropout,
    has_embedding,
    is_mlp_with_dropout,
    is_plain_mlp,
    is_recurrent,
)
from tests.learning.cases import CONVOLUTIONS, MLP, READING, WORDS, dropping


@pytest.mark.parametrize(
    ("build", "found"),
    [
        (MLP, {is_plain_mlp, is_mlp_with_dropout}),
        (CONVOLUTIONS, set()),
        (WORDS, {has_embedding}),
        (READING, {has_embedding, is_recurrent}),
        (dropping, {has_dropout, is_mlp_with_dropout}),
        (lambda: nn.Sequential(nn.Dropout(0.1), nn.GELU()), {has_dropout}),
        (lambda: nn.GRU(2, 2), {is_recurrent}),
    ],
)
def test_detects_dropout_embeddings_recurrence_and_mlps(build, found):
    checks = (has_dropout, has_embedding, is_recurrent, is_plain_mlp, is_mlp_with_dropout)
    assert {one for one in checks if one(build())} == found


class Bounded(nn.ReLU):
    """An activation with another function than its base class."""

    def forward(self, input):
        return input.clamp(0, 0.2)


LAYER, ACTIVATION = nn.Linear(2, 2), nn.ReLU()

TIED = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
TIED[2].weight = TIED[0].weight


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Linear(2, 2), ACTIVATION, nn.Linear(2, 2), ACTIVATION),
        nn.Sequential(LAYER, nn.ReLU(), LAYER),
        TIED,
        nn.Sequential(nn.Linear(2, 2), Bounded()),
        nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.LeakyReLU()),
        nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Dropout(0.0), nn.Tanh()),
        nn.Sequential(nn.Linear(2, 2), nn.LeakyReLU(-0.1)),
        nn.Linear(2, 2),
        nn.Sequential(),
        nn.Sequential(nn.ReLU(), nn.Linear(2, 2)),
        nn.Sequential(nn.Flatten(2), nn.Linear(2, 2)),
        nn.Sequential(nn.Linear(2, 2), nn.Softmax(1)),
    ],
)
def test_other_networks_are_no_plain_mlps(model):
    assert not is_plain_mlp(model)
    assert not is_mlp_with_dropout(model)
