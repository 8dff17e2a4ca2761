import pytest
from torch import nn

from overheard.core.errors import PlanError
from overheard.core.task import Task
from overheard.learning.models.own import Own

TASK = Task((4,), ("low", "middle", "high"))


def three(task: Task) -> nn.Module:
    return nn.Linear(*task.shape, 3)


def four(task: Task) -> nn.Module:
    return nn.Linear(*task.shape, 4)


def test_builds_a_model_that_returns_one_number_per_class():
    model = Own(f"{__name__}:three").build(TASK)
    assert isinstance(model, nn.Linear)
    assert model.training


def test_refuses_a_model_with_another_number_of_outputs():
    with pytest.raises(PlanError, match=r"\(1, 4\) for one example, but .* 3 classes"):
        Own(f"{__name__}:four").build(TASK)
