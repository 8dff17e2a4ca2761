import torch
from torch import nn

from overheard.core.examples import Examples
from overheard.questions.shift.attacks.shift_tracking import mean_feature_changes

START = {"0.weight": torch.eye(2), "2.weight": torch.ones(2, 2), "2.bias": torch.zeros(2)}
STILL = {name: torch.zeros_like(weight) for name, weight in START.items()}
HELD_OUT = Examples(torch.tensor([[1.0, -1.0], [3.0, 5.0]]), torch.tensor([0, 1]))


def build() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU(), nn.Linear(2, 2))


def test_returns_the_change_of_each_mean_feature() -> None:
    # Features are relu(x): (1, 0) and (3, 5), mean (2, 2.5). With the first row doubled they
    # are (2, 0) and (6, 5), mean (4, 2.5).
    doubled = {**STILL, "0.weight": torch.tensor([[1.0, 0.0], [0.0, 0.0]])}
    read = mean_feature_changes(build, [START, START], [STILL, doubled], HELD_OUT)
    assert read.tolist() == [[0.0, 0.0], [2.0, 0.0]]


def test_ignores_the_last_layer() -> None:
    moved = {**STILL, "2.weight": torch.full((2, 2), 9.0), "2.bias": torch.ones(2)}
    assert not bool(mean_feature_changes(build, [START], [moved], HELD_OUT).any())
