"""Layer outputs, compared with outputs computed without hooks."""

import pytest
import torch
from torch import Tensor, nn

from overheard.core.seeds import Seed
from overheard.learning.evaluate import logits_of_models
from overheard.learning.initialization import initial_weights
from overheard.learning.representations import representations_of_models
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
