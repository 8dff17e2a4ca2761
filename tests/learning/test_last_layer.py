"""The last linear layer is found by its position."""

import pytest
from torch import nn

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


def test_finds_a_layer_without_bias_and_one_that_is_the_whole_model():
    assert find_last_layer(nn.Linear(2, 3, bias=False)) == LastLayer("weight", None)


def test_refuses_a_model_without_linear_layers():
    with pytest.raises(ValueError, match="has no nn"):
        find_last_layer(nn.Sequential(nn.Conv2d(1, 1, 1)))
