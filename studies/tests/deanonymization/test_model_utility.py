from dataclasses import replace

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.task import Task
from overheard.learning.models.logistic import Logistic
from overheard_studies.deanonymization.measures import (
    chance_utility,
    mean_over_seeds,
    measure_utility,
)
from overheard_studies.deanonymization.setting import WISDM

TASK = Task((2,), ("a", "b"))
ALWAYS_A = {"1.weight": torch.zeros(2, 2), "1.bias": torch.tensor([1.0, 0.0])}
TEST = Examples(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]))


def test_a_constant_model_has_the_accuracy_of_its_label() -> None:
    names = [name for name, _ in Logistic().build(TASK).named_parameters()]
    weights = dict(zip(names, ALWAYS_A.values(), strict=True))
    # Three of four labels are a.
    assert measure_utility(replace(WISDM, model=Logistic()), TASK, weights, TEST) == 0.75


def test_chance_has_the_mean_distance_of_a_random_label() -> None:
    # Label 0: (0 + 1 + 2) / 3 = 1; label 1: (1 + 0 + 1) / 3 = 2/3; mean 5/6.
    labels = torch.tensor([0, 1])
    assert chance_utility("absolute_error", labels, 3) == pytest.approx(5 / 6)
    assert chance_utility("top5", labels, 5000) == 0.001
    assert chance_utility("accuracy", labels, 6) == pytest.approx(1 / 6)


def test_one_seed_gives_no_interval() -> None:
    assert mean_over_seeds([0.5]).low is None
    assert mean_over_seeds([0.4, 0.6]).mean == pytest.approx(0.5)
