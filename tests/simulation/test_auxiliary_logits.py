import math

import pytest
import torch
from torch import nn

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.simulation.auxiliary_logits import (
    AuxiliaryLogits,
    accuracies,
    mean_logits,
    mean_softmax,
)
from overheard.simulation.probe import ProbeContext


def build() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 2, bias=False))


@pytest.fixture
def context() -> ProbeContext:
    """Return a context with three held-out examples and a broadcast of zeros."""
    inputs = torch.tensor([[1.0, 0.0], [3.0, 0.0], [0.0, 1.0]])
    held_out = Examples(inputs, torch.tensor([0, 0, 1]))
    start = {"0.weight": torch.zeros(2, 2)}
    return ProbeContext(0, start, build, 2, held_out, held_out, None, Seed(0), "cpu")


def test_means_are_by_true_class(context: ProbeContext) -> None:
    # Logits are W x. W = ((1, 2), (0, 0)): (1, 0) and (3, 0) for class 0, (2, 0) for class 1.
    reading = AuxiliaryLogits().read(
        context, [{"0.weight": torch.tensor([[1.0, 2.0], [0.0, 0.0]])}]
    )
    assert reading.shape == (1, 5, 2)
    assert mean_logits(reading)[0].tolist() == [[2.0, 0.0], [2.0, 0.0]]
    first = (1 / (1 + math.exp(-1)) + 1 / (1 + math.exp(-3))) / 2
    second = 1 / (1 + math.exp(-2))
    expected = torch.tensor([[first, 1 - first], [second, 1 - second]])
    assert torch.allclose(mean_softmax(reading)[0], expected)
    # Class 0 is predicted for all three: correct for class 0 only.
    assert accuracies(reading)[0].tolist() == [1.0, 0.0]
