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
from overheard.questions.shift.estimators.model_comparisons import representations_of_models
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


INPUTS = torch.tensor([[1.0, 2.0], [3.0, -1.0]])


def with_inplace_relu() -> nn.Module:
    """A linear layer with an activation in place."""
    return nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))


class Twice(nn.Module):
    """A network that calls one layer twice and another one never."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.bend = nn.Tanh()
        self.idle = nn.Linear(2, 2)
        self.body = nn.Sequential(nn.Linear(2, 3))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.bend(self.body(self.bend(self.first(inputs))))


def test_returns_the_outputs_of_each_layer_computed_by_hand():
    # (1, 2) -> (1 - 2, 1 + 2 + 1) = (-1, 4); (3, -1) -> (4, 3). Bent: (0, 4) and (4, 3).
    weights = {
        "0.weight": torch.tensor([[1.0, -1.0], [1.0, 1.0]]),
        "0.bias": torch.tensor([0.0, 1.0]),
    }
    (outputs_by_layer,) = representations_of_models(with_inplace_relu, [weights], INPUTS)
    assert outputs_by_layer["0"].tolist() == [[-1, 4], [4, 3]]
    assert outputs_by_layer["1"].tolist() == [[0, 4], [4, 3]]


@pytest.mark.parametrize(
    ("build", "task"),
    [(MLP, TABLE), (CONVOLUTIONS, IMAGES), (WORDS, TEXTS), (READING, TEXTS)],
)
def test_the_last_outputs_are_the_logits_for_any_batch_size(build, task):
    inputs = pool_of(task, torch.float32).inputs
    cohort = [initial_weights(build, Seed(number)) for number in range(3)]
    logits = list(logits_of_models(build, cohort, inputs))
    outputs_by_layer = list(representations_of_models(build, cohort, inputs, batch=7))
    for layers, expected in zip(outputs_by_layer, logits, strict=True):
        torch.testing.assert_close(list(layers.values())[-1], expected)
        assert {len(outputs) for outputs in layers.values()} == {len(inputs)}


def test_concatenates_outputs_of_layers_called_twice_and_omits_unused_layers():
    (outputs_by_layer,) = representations_of_models(
        Twice, [initial_weights(Twice, Seed(0))], INPUTS
    )
    assert {name: outputs.shape[1] for name, outputs in outputs_by_layer.items()} == {
        "first": 2,
        "bend": 2 + 3,
        "body.0": 3,
    }
    torch.testing.assert_close(
        outputs_by_layer["bend"],
        torch.cat([outputs_by_layer["first"], outputs_by_layer["body.0"]], 1).tanh(),
    )


def test_one_layer_alone_has_the_same_outputs():
    weights = initial_weights(Twice, Seed(0))
    (whole,) = representations_of_models(Twice, [weights], INPUTS)
    (alone,) = representations_of_models(Twice, [weights], INPUTS, layer="body.0")
    assert alone.keys() == {"body.0"}
    assert torch.equal(alone["body.0"], whole["body.0"])
    (none,) = representations_of_models(Twice, [weights], INPUTS, layer="body")
    assert not none


def test_removes_hooks_if_the_model_fails():
    model = with_inplace_relu()
    with pytest.raises(RuntimeError):
        list(
            representations_of_models(
                lambda: model, [dict(model.named_parameters())], torch.ones(2, 3)
            )
        )
    assert not any(module._forward_hooks for module in model.modules())
