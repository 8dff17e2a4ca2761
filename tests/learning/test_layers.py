"""Layers of a network are found by name, read and compared."""

import pytest
import torch
from torch import Tensor, nn

from overheard.core.errors import NeedsError
from overheard.core.seeds import Seed
from overheard.learning.evaluate import logits_of_models
from overheard.learning.features import build_without_last_layer, features_of_models
from overheard.learning.initialization import initial_weights
from overheard.learning.last_layer import LastLayer, find_last_layer
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


@pytest.mark.parametrize(
    ("build", "place"), [(MLP, "5"), (CONVOLUTIONS, "8"), (WORDS, "3"), (READING, "last")]
)
def test_names_the_last_linear_layer(build, place):
    model = build()
    found = find_last_layer(model)
    assert found == LastLayer(f"{place}.weight", f"{place}.bias")
    assert dict(model.named_parameters())[found.weight].shape[0] == 3


def test_refuses_a_model_without_linear_layers():
    with pytest.raises(NeedsError, match="has no nn"):
        find_last_layer(nn.Sequential(nn.Conv2d(1, 1, 1)))


def test_refuses_a_frozen_layer_and_one_with_other_outputs():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4))
    with pytest.raises(NeedsError, match="has 4 outputs, and the task has 3 classes"):
        find_last_layer(model, classes=3)
    model[1].bias.requires_grad_(False)
    assert find_last_layer(model, classes=4) == LastLayer("1.weight", None)
    model[1].requires_grad_(False)
    with pytest.raises(NeedsError, match=r"1\.weight, .* is frozen and never sent"):
        find_last_layer(model)


class Tied(nn.Module):
    """A network whose last layer has the weight of an earlier one, and a bias of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.code = nn.Linear(5, 3, bias=False)
        self.middle = nn.Linear(3, 5)
        self.head = nn.Linear(5, 3)
        self.head.weight = self.code.weight

    def forward(self, inputs):
        return self.head(self.middle(self.code(inputs)))


def test_a_weight_of_two_layers_is_read_under_the_name_under_which_it_is_sent():
    model, inputs = Tied(), torch.randn(2, 5)
    assert find_last_layer(model) == LastLayer("code.weight", "head.bias")
    expected = model.middle(model.code(inputs))
    assert torch.equal(build_without_last_layer(lambda: model)(inputs), expected)
    model = Tied()
    model.code.weight.requires_grad_(False)
    with pytest.raises(NeedsError, match=r"head\.weight, .* is frozen and never sent"):
        find_last_layer(model)
