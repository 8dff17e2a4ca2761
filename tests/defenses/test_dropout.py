"""Dropout is added before the last linear layer and changes nothing else of a model."""

from multiprocessing.reduction import ForkingPickler

import pytest
import torch
from torch import Tensor, nn

from overheard.core.defense import BuildModel, LocalTraining
from overheard.core.errors import PlanError
from overheard.core.recipe import Recipe
from overheard.defenses.dropout import Dropout, DroppedLinear, ModelWithDropout

RECIPE = Recipe(rate=0.1, epochs=1, batch=4)


class Nested(nn.Module):
    """The last layer is in a nested module; a linear layer without bias comes first."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 6, bias=False)
        self.head = nn.ModuleDict({"out": nn.Sequential(nn.ReLU(), nn.Linear(6, 3))})

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.head["out"](self.body(inputs))
        return logits


def plain() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3), nn.Identity())


def single() -> nn.Module:
    return nn.Linear(4, 3)


def without_linear() -> nn.Module:
    return nn.Conv2d(1, 1, 3)


def attentive() -> nn.Module:
    return nn.ModuleDict({"out": nn.Linear(4, 2), "mix": nn.MultiheadAttention(4, 2)})


def defended(build: BuildModel, rate: float = 0.5) -> nn.Module:
    return Dropout(rate).on_training(LocalTraining(build, RECIPE)).build_model()


@pytest.mark.parametrize(
    ("build", "last"), [(plain, "2"), (Nested, "head.out.1"), (single, ""), (attentive, "out")]
)
def test_adds_dropout_only_before_the_last_linear_layer(build: BuildModel, last: str) -> None:
    model = defended(build)
    standing = [path for path, part in model.named_modules() if isinstance(part, DroppedLinear)]
    assert standing == [last]


@pytest.mark.parametrize("build", [plain, Nested, single])
def test_does_not_change_the_initial_weights(
    build: BuildModel,
) -> None:
    torch.manual_seed(5)
    without = build().state_dict()
    after_plain = torch.get_rng_state()
    torch.manual_seed(5)
    defended_weights = defended(build).state_dict()
    assert torch.equal(torch.get_rng_state(), after_plain)
    assert list(defended_weights) == list(without)
    assert all(torch.equal(defended_weights[name], without[name]) for name in without)


def test_does_not_change_outputs_in_evaluation() -> None:
    inputs = torch.linspace(-1, 1, 8).reshape(2, 4)
    torch.manual_seed(5)
    expected = plain().eval()(inputs)
    torch.manual_seed(5)
    assert torch.equal(defended(plain).eval()(inputs), expected)


def test_drops_or_rescales_each_input_of_the_last_layer_in_training() -> None:
    model = defended(single, rate=0.75)
    assert isinstance(model, nn.Linear)
    weight = torch.zeros(3, 4)
    weight[0, 0] = 1.0
    with torch.no_grad():
        model.weight.copy_(weight)
        model.bias.zero_()
    torch.manual_seed(0)
    got = model.train()(torch.ones(4000, 4))[:, 0]
    # An input of 1 becomes 0, or 1 / (1 - 0.75) = 4 with chance 0.25.
    assert set(got.tolist()) == {0.0, 4.0}
    # Standard error of the share: sqrt(0.25 * 0.75 / 4000) = 0.0068; five of them.
    assert abs(float((got == 4).double().mean()) - 0.25) < 0.035


def test_the_builder_can_be_pickled() -> None:
    builder = Dropout(0.3).on_training(LocalTraining(plain, RECIPE)).build_model
    arrived = ForkingPickler.loads(ForkingPickler.dumps(builder))
    assert arrived == builder == ModelWithDropout(plain, 0.3)


def test_refuses_a_model_without_a_linear_layer_and_says_what_to_do() -> None:
    with pytest.raises(PlanError, match="Conv2d has none; choose another model"):
        defended(without_linear)
