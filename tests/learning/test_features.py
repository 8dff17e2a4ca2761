"""Inputs of the last layer."""

import pytest
import torch
from torch import Tensor, nn

from overheard.core.seeds import Seed
from overheard.learning.evaluate import logits_of_models
from overheard.learning.features import features_of_models
from overheard.learning.initialization import initial_weights
from overheard.learning.last_layer import find_last_layer
from tests.learning.cases import (
    CONVOLUTIONS,
    IMAGES,
    MLP,
    READING,
    TABLE,
    TEXTS,
    WORDS,
    pool_of,
)


class Nested(nn.Module):
    """A last layer that is not the last module of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 4), nn.Tanh())
        self.top = nn.ModuleDict({"head": nn.Linear(4, 3, bias=False)})

    def forward(self, inputs: Tensor) -> Tensor:
        return self.top["head"](self.body(inputs))


def linear() -> nn.Module:
    return nn.Linear(6, 3)


@pytest.mark.parametrize(
    ("build", "task"),
    [
        (MLP, TABLE),
        (CONVOLUTIONS, IMAGES),
        (WORDS, TEXTS),
        (READING, TEXTS),
        (Nested, TABLE),
        (linear, TABLE),
    ],
)
def test_one_product_with_the_last_layer_gives_the_logits(build, task):
    inputs = pool_of(task, torch.float32).inputs
    cohort = [initial_weights(build, Seed(number)) for number in range(3)]
    layer = find_last_layer(build())
    logits = list(logits_of_models(build, cohort, inputs))
    features = list(features_of_models(build, cohort, inputs, batch=7))
    for weights, inner, outer in zip(cohort, features, logits, strict=True):
        product = inner @ weights[layer.weight].T
        if layer.bias is not None:
            product = product + weights[layer.bias]
        torch.testing.assert_close(product, outer)


def test_a_model_of_one_layer_has_its_inputs_as_features():
    inputs = pool_of(TABLE, torch.float32).inputs
    (features,) = features_of_models(linear, [initial_weights(linear, Seed(0))], inputs)
    assert torch.equal(features, inputs)
