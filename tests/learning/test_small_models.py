"""Models of users, unknown models, MobileNets, and how models begin."""

from functools import partial

import pytest
import torch
from torch import nn

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.initialization import initial_weights, model_structure
from overheard.learning.models.custom import Own
from overheard.learning.models.mobilenet import MobileNet
from overheard.learning.models.unknown import Unknown
from tests.learning.cases import MLP, same_bits

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


UNTOLD = Task((1,), ("a", "b"))


def test_has_the_tensors_of_the_recording():
    model = Unknown(("a.fc.weight 10x64", "a.fc.bias 10", "échelle 1 scalar")).build(UNTOLD)
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
        Unknown(tensors).build(UNTOLD)


TEN = tuple("0123456789")


def test_has_the_weights_of_the_published_network():
    # First convolution 32 x 27; blocks 9 c + c d for c -> d, in sum 44,640 + 3,139,584; two
    # numbers of norm for each of 10,944 channels; classes 1,025 x 1,000. Together "4.2 million"
    # (Howard et al. 2017, Table 8).
    task = Task((3, 224, 224), tuple(str(number) for number in range(1000)))
    weights = initial_weights(partial(MobileNet().build, task), Seed(0))
    assert sum(weight.numel() for weight in weights.values()) == 4_231_976


@pytest.mark.parametrize(("side", "left"), [(28, 2), (32, 2), (48, 3), (64, 2), (224, 7)])
def test_the_first_convolution_keeps_the_size_of_small_images(side, left):
    # 28: 28, 14, 7, 4, 2 pixels a side. 64: 32, 16, 8, 4, 2.
    network = MobileNet(alpha=0.25).build(Task((1, side, side), TEN))
    assert isinstance(network, nn.Sequential)
    with torch.no_grad():
        maps = network[:-3](torch.zeros(2, 1, side, side))
    assert maps.shape == (2, 256, left, left)


def test_initial_weights_do_not_depend_on_earlier_draws():
    first = initial_weights(MLP, Seed(1))
    torch.rand(5)
    assert same_bits(initial_weights(MLP, Seed(1)), first)
    assert not same_bits(initial_weights(MLP, Seed(2)), first)


def test_a_structure_has_the_shapes_of_the_model_and_no_numbers():
    structure = model_structure(MLP)
    whole = initial_weights(MLP, Seed(0))
    assert {n: one.shape for n, one in structure.named_parameters()} == {
        name: one.shape for name, one in whole.items()
    }
    assert all(one.is_meta for one in structure.parameters())


def test_a_model_that_needs_its_numbers_is_built_as_usual():
    def build() -> nn.Module:
        model = nn.Linear(2, 3)
        model.scale = float(model.weight.sum())
        return model

    assert not model_structure(build).weight.is_meta
