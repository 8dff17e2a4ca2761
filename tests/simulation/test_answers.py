import math

import pytest
import torch
from torch import nn

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.simulation.answers import Answers, accuracies, mean_logits, mean_softmax
from overheard.simulation.probe import Scene


def build() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 2, bias=False))


@pytest.fixture
def scene() -> Scene:
    """Three examples; the broadcast says nothing: all its weights are 0."""
    inputs = torch.tensor([[1.0, 0.0], [3.0, 0.0], [0.0, 1.0]])
    held_out = Examples(inputs, torch.tensor([0, 0, 1]))
    start = {"0.weight": torch.zeros(2, 2)}
    return Scene(0, start, build, 2, held_out, held_out, None, Seed(0), "cpu")


def test_means_are_taken_by_true_class(scene: Scene) -> None:
    # Logits are W x. W = ((1, 2), (0, 0)): (1, 0) and (3, 0) for class 0, (2, 0) for class 1.
    read = Answers().read(scene, [{"0.weight": torch.tensor([[1.0, 2.0], [0.0, 0.0]])}])
    assert read.shape == (1, 5, 2)
    assert mean_logits(read)[0].tolist() == [[2.0, 0.0], [2.0, 0.0]]
    first = (1 / (1 + math.exp(-1)) + 1 / (1 + math.exp(-3))) / 2
    second = 1 / (1 + math.exp(-2))
    expected = torch.tensor([[first, 1 - first], [second, 1 - second]])
    assert torch.allclose(mean_softmax(read)[0], expected)
    # Class 0 is ranked first for all three: right for class 0 only.
    assert accuracies(read)[0].tolist() == [1.0, 0.0]


def test_clients_are_read_in_their_order(scene: Scene) -> None:
    deltas = [{"0.weight": torch.full((2, 2), value) * torch.eye(2)} for value in (0.0, 1.0)]
    read = Answers().read(scene, deltas)
    # W = 0 ranks both classes alike; W = I ranks each input by its own column.
    assert mean_logits(read)[0].abs().sum() == 0
    assert accuracies(read)[1].tolist() == [1.0, 1.0]


def test_who_changes_nothing_answers_as_the_broadcast_does(scene: Scene) -> None:
    read = Answers().read(scene, [{"0.weight": torch.zeros(2, 2)}])
    assert mean_softmax(read).eq(0.5).all()
