"""A model of which only the tensors are known."""

import pytest
import torch

from overheard.core.errors import PlanError
from overheard.core.task import Task
from overheard.learning.models.unknown import Unknown

TASK = Task((1,), ("a", "b"))


def test_has_the_tensors_of_the_recording():
    model = Unknown(("a.fc.weight 10x64", "a.fc.bias 10", "échelle 1 scalar")).build(TASK)
    shapes = {name: tuple(one.shape) for name, one in model.named_parameters()}
    assert shapes == {"a.fc.weight": (10, 64), "a.fc.bias": (10,), "échelle 1": ()}
    with pytest.raises(PlanError, match="cannot compute"):
        model(torch.zeros(1, 1))


@pytest.mark.parametrize("tensors", [(), ("fc",), ("fc 3x",), ("fc 99999999999",)])
def test_refuses_other_texts(tensors: tuple[str, ...]):
    with pytest.raises(ValueError, match="tensors"):
        Unknown(tensors)


@pytest.mark.parametrize("tensors", [("a 2", "a.b 2"), ("forward 2",), ("a..b 2",)])
def test_refuses_names_that_no_parameter_can_have(tensors: tuple[str, ...]):
    with pytest.raises(PlanError, match="cannot be a parameter"):
        Unknown(tensors).build(TASK)
