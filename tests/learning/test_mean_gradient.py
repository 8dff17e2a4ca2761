"""The mean gradient, estimated from an update."""

import pytest
import torch

from overheard.learning import mean_gradient as module
from overheard.learning.last_layer import LastLayer
from overheard.learning.mean_gradient import mean_gradient, mean_gradients

LAYER = LastLayer("w", "b")
WEIGHT, BIAS = torch.tensor([[1.0, -2.0], [0.0, 4.0]]), torch.tensor([0.5, -0.5])


def test_is_minus_the_change_over_the_sum_of_rates():
    # Five steps at a rate of 0.1 make a length of 0.5: twice the change, with the other sign.
    gradient = mean_gradient({"w": WEIGHT, "b": BIAS}, LAYER, 0.5)
    assert gradient.weight.tolist() == [[-2, 4], [0, -8]]
    assert gradient.bias.tolist() == [-1, 1]


def test_returns_none_without_a_change():
    assert mean_gradient({"w": 0 * WEIGHT, "b": 0 * BIAS}, LAYER, 0.5) is None
    assert mean_gradient({"w": 0 * WEIGHT, "b": BIAS}, LAYER, 0.5) is not None


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_returns_none_for_nonfinite_changes(value):
    broken = torch.tensor([0.5, value])
    assert mean_gradient({"w": WEIGHT, "b": broken}, LAYER, 0.5) is None


def test_several_clients_get_the_gradients_of_each_alone(monkeypatch):
    # 32 bytes for a weight of 4 numbers in float64: 2 of the 3 clients in the first stack.
    monkeypatch.setattr(module, "STACK_BYTES", 64)
    deltas = [
        {"w": WEIGHT, "b": BIAS},
        {"w": 0 * WEIGHT, "b": 0 * BIAS},
        {"w": 3 * WEIGHT, "b": float("inf") * BIAS},
    ]
    first, second = mean_gradients(deltas, LAYER, [0.5, 0.25, 0.125])
    assert first.is_usable.tolist() == [True, False]
    assert second.is_usable.tolist() == [False]
    alone = mean_gradient(deltas[0], LAYER, 0.5)
    assert torch.equal(first.weight[0], alone.weight)
    assert torch.equal(first.bias[0], alone.bias)
    assert torch.equal(second.weight[0], -24 * WEIGHT.double())
