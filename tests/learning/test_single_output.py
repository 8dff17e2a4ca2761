"""Networks with one output: a logit of two classes, or a number without an axis."""

import pickle
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.custom_networks.single_output import change_by_class, weight_by_class
from overheard.learning.features import features_of_models
from overheard.learning.initialization import initial_weights
from overheard.learning.last_layer import find_last_layer
from overheard.learning.loss import mean_loss
from overheard.learning.models.custom import Own

BINARY = Task((3,), ("no", "yes"))
NUMBER = Task((3,), ("days",), kind="regression")


class OneLogit(nn.Module):
    """Two layers and one output, without an axis of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.last = nn.Linear(4, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return (examples,), and of a single example no axis at all."""
        outputs: Tensor = self.last(self.first(inputs).relu()).squeeze()
        return outputs


def with_sigmoid() -> nn.Module:
    """End in a sigmoid that is a module."""
    return nn.Sequential(nn.Linear(3, 1), nn.Sigmoid())


class Probability(OneLogit):
    """A probability that no module shows."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Return probabilities."""
        return torch.sigmoid(super().forward(inputs))


def own(name: str) -> Own:
    return Own(f"{__name__}:{name}")


def test_one_logit_becomes_two_with_the_same_tensors() -> None:
    network = own("OneLogit").build(BINARY)
    inputs = torch.randn(5, 3, generator=Seed(0).generator())
    plain = OneLogit()
    plain.load_state_dict(network.state_dict())
    logits = network(inputs)
    assert torch.equal(logits[:, 1], plain(inputs))
    assert torch.equal(logits[:, 0], torch.zeros(5))
    assert find_last_layer(network, classes=2).weight == "last.weight"
    restored = pickle.loads(pickle.dumps(network))  # noqa: S301 - made here
    assert torch.equal(restored(inputs), logits)


def test_training_is_that_of_the_binary_cross_entropy() -> None:
    network = own("OneLogit").build(BINARY)
    plain = OneLogit()
    plain.load_state_dict(network.state_dict())
    inputs = torch.randn(6, 3, generator=Seed(2).generator())
    labels = torch.tensor([0, 1, 1, 0, 1, 0])
    as_two = mean_loss(network(inputs), labels, "cross_entropy", 0.0)
    as_one = nn.functional.binary_cross_entropy_with_logits(plain(inputs), labels.float())
    torch.testing.assert_close(as_two, as_one)
    two = torch.autograd.grad(as_two, list(network.parameters()))
    one = torch.autograd.grad(as_one, list(plain.parameters()))
    for ours, theirs in zip(two, one, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_features_are_the_inputs_of_the_last_layer() -> None:
    build = partial(own("OneLogit").build, BINARY)
    start = initial_weights(build, Seed(1))
    inputs = torch.randn(5, 3, generator=Seed(2).generator())
    (features,) = features_of_models(build, [start], inputs, batch=2)
    expected = (inputs @ start["first.weight"].T + start["first.bias"]).relu()
    torch.testing.assert_close(features, expected)


def test_rows_by_class_are_those_of_two_logits() -> None:
    # z1 - z0 = w h, and the gradients of the two logits are p - y and y - p.
    assert weight_by_class(torch.tensor([[2.0, 3.0]])).tolist() == [[0, 0], [2, 3]]
    assert change_by_class(torch.tensor([[2.0, 3.0]])).tolist() == [[-2, -3], [2, 3]]
    assert change_by_class(torch.tensor([1.0, 4.0, 5.0])).tolist() == [1, 4, 5]


def test_a_last_sigmoid_is_left_out_and_a_hidden_one_refused() -> None:
    network = own("with_sigmoid").build(BINARY)
    inputs = 100 * torch.eye(3)
    linear = network.get_submodule("0")
    assert torch.equal(network(inputs)[:, 1:], linear(inputs))
    with pytest.raises(PlanError, match="must return a logit: leave the sigmoid out"):
        own("Probability").build(BINARY)


def test_a_number_without_an_axis_gets_one() -> None:
    assert own("OneLogit").build(NUMBER)(torch.zeros(1, 3)).shape == (1, 1)
    assert own("OneLogit").build(NUMBER)(torch.zeros(7, 3)).shape == (7, 1)


def test_one_output_for_three_classes_is_refused() -> None:
    with pytest.raises(PlanError, match="the task has 3 classes"):
        own("OneLogit").build(Task((3,), ("a", "b", "c")))
