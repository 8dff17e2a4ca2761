import pytest
from torch import nn

from overheard.core.errors import PlanError
from overheard.core.task import Task
from overheard.learning.models.own import Own

TASK = Task((4,), ("low", "middle", "high"))


def four(task: Task) -> nn.Module:
    return nn.Linear(*task.shape, 4)


class Net(nn.Linear):
    """A user's network, whose constructor takes no task."""

    def __init__(self, inputs: int = 4) -> None:
        super().__init__(inputs, 3)


def broken(task: Task) -> nn.Module:
    raise RuntimeError("no weights here")


def narrow(task: Task) -> nn.Module:
    return nn.Linear(5, 3)


def test_a_class_builds_a_model_like_a_function():
    assert isinstance(Own(f"{__name__}:Net").build(TASK), Net)


def test_a_failing_function_is_one_message():
    with pytest.raises(PlanError, match=r"broken failed, RuntimeError: no weights.*a Task"):
        Own(f"{__name__}:broken").build(TASK)
    with pytest.raises(PlanError, match=r"narrow fails on an example of shape \(4,\)"):
        Own(f"{__name__}:narrow").build(TASK)


def test_refuses_a_model_with_another_number_of_outputs():
    with pytest.raises(PlanError, match=r"\(1, 4\) for one example, but .* 3 classes"):
        Own(f"{__name__}:four").build(TASK)
