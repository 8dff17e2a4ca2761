"""The last linear layer is found by its position."""

import pytest
import torch
from torch import nn

from overheard.core.errors import NeedsError
from overheard.learning.features import build_without_last_layer
from overheard.learning.last_layer import LastLayer, find_last_layer
from tests.learning.cases import CONVOLUTIONS, MLP, READING, WORDS


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
