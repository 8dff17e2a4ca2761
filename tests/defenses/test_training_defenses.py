"""Defenses that change how a client trains."""

import math
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from overheard.core.defense import (
    BuildModel,
    DefenseContext,
    LocalTraining,
    PreviousData,
    RunParameters,
)
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.parties import client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.defenses.chunk_smoothing import ChunkSmoothing
from overheard.defenses.class_balanced import ClassBalanced
from overheard.defenses.dropout import Dropout, DroppedLinear, ModelWithDropout
from overheard.defenses.label_smoothing import LabelSmoothing
from overheard.learning.train import Engine, train_cohort
from overheard.learning.training_job import ClientTask

PLAIN_RECIPE = Recipe(rate=0.1, epochs=1, batch=4)


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
    return Dropout(rate).on_training(LocalTraining(build, PLAIN_RECIPE)).build_model()


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
    builder = Dropout(0.3).on_training(LocalTraining(plain, PLAIN_RECIPE)).build_model
    arrived = ForkingPickler.loads(ForkingPickler.dumps(builder))
    assert arrived == builder == ModelWithDropout(plain, 0.3)


def test_refuses_a_model_without_a_linear_layer_and_says_what_to_do() -> None:
    with pytest.raises(PlanError, match="Conv2d has none; choose another model"):
        defended(without_linear)


RECIPE = Recipe(rate=1.0, epochs=1, batch=8, momentum=0.5)


def build_model() -> nn.Module:
    return nn.Sequential(nn.Linear(1, 4, bias=False))


def delta(recipe: Recipe, engine: Engine, last: float = 0.0) -> list[float]:
    """What one step on three examples of x = 2, of the classes 0, 0 and 1 of four, changes."""
    (trained,) = train_cohort(
        build_model,
        {"0.weight": torch.tensor([[0.0], [0.0], [0.0], [last]], dtype=torch.float64)},
        Examples(torch.full((3, 1), 2.0, dtype=torch.float64), torch.tensor([0, 0, 1])),
        [ClientTask("client/0", torch.arange(3))],
        recipe,
        seed=Seed(0),
        round=0,
        engine=engine,
    )
    return [float(number) for number in trained.delta["0.weight"]]


def smoothed(smoothing: float, recipe: Recipe = RECIPE) -> Recipe:
    return LabelSmoothing(smoothing).on_training(LocalTraining(build_model, recipe)).recipe


@pytest.mark.parametrize("engine", ["sequential", "stacked"])
def test_updates_follow_smoothed_shares(engine: Engine) -> None:
    # All weights 0: every class has probability 1/4. The shares are (2/3, 1/3, 0, 0); smoothed
    # by 1/4 they are 3/4 of that plus 1/16: (9/16, 5/16, 1/16, 1/16). A step at rate 1 moves
    # by 2 (shares - 1/4): times 16, (10, 2, -6, -6).
    got = delta(smoothed(0.25), engine)
    assert [16 * number for number in got] == pytest.approx([10, 2, -6, -6], abs=1e-12)


def test_the_sign_of_an_absent_class_flips_at_low_probability() -> None:
    # Of weights (0, 0, 0, w) class 3 has the probability e^2w / (3 + e^2w): 1/4 at w = 0 and
    # 0.02 at w = -1 / 2 ln(49 / 3), beside a target of 0, or of 0.2 / 4 = 0.05. Its weight
    # moves by 2 (target - probability).
    hardly = -math.log(49 / 3) / 2
    assert delta(RECIPE, "sequential", hardly)[3] == pytest.approx(2 * (0 - 0.02))
    assert delta(smoothed(0.2), "sequential", hardly)[3] == pytest.approx(2 * (0.05 - 0.02))
    assert delta(smoothed(0.2), "sequential")[3] == pytest.approx(2 * (0.05 - 0.25))


def test_a_known_smoothing_can_be_inverted() -> None:
    # The shares stand in the moves still: (move / 2 + 1/4 - s / 4) / (1 - s).
    s = 0.4
    shares = [(move / 2 + 1 / 4 - s / 4) / (1 - s) for move in delta(smoothed(s), "sequential")]
    assert shares == pytest.approx([2 / 3, 1 / 3, 0, 0], abs=1e-12)


def test_smooths_smoothed_labels_again() -> None:
    # Half of the one-hot target is left, then a fifth of that goes: 0.5 * 0.8 = 0.4 = 1 - 0.6.
    twice = smoothed(0.2, Recipe(rate=1.0, epochs=1, batch=8, label_smoothing=0.5))
    assert twice.label_smoothing == pytest.approx(0.6, abs=1e-15)


def test_refuses_a_squared_error_loss() -> None:
    rating = Recipe(rate=1.0, epochs=1, batch=8, loss="squared_error")
    with pytest.raises(PlanError, match="squared_error; remove the defense"):
        smoothed(0.1, rating)


def numbered(*labels: int) -> Examples:
    """Examples whose inputs are 0, 1, 2, ..."""
    return Examples(torch.arange(float(len(labels)))[:, None], torch.tensor(labels))


def balanced(data: Examples, seed: int = 0) -> Examples:
    return ClassBalanced().on_data(data, DefenseContext(2, client(3), Seed(seed)))


def test_repeats_rare_classes_and_omits_examples_of_frequent_ones() -> None:
    # 8 examples of 2 classes: 4 each. The two of class 5 are taken twice each, of the six of
    # class 0 four once.
    got = balanced(numbered(0, 0, 5, 0, 0, 5, 0, 0))
    assert got.labels.bincount().tolist() == [4, 0, 0, 0, 0, 4]
    taken = got.inputs.flatten().int().bincount(minlength=8)
    assert taken[[2, 5]].tolist() == [2, 2]
    assert int(taken[[0, 1, 3, 4, 6, 7]].sum()) == int((taken[[0, 1, 3, 4, 6, 7]] == 1).sum())


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(0, 2**62))
def test_keeps_the_size_and_balances_classes_up_to_one_example(
    labels: list[int], seed: int
) -> None:
    data = numbered(*labels)
    got = balanced(data, seed)
    assert len(got) == len(data)
    before, after = data.label_counts(6), got.label_counts(6)
    assert torch.equal(before > 0, after > 0)
    held = after[after > 0]
    assert int(held.max()) - int(held.min()) <= 1
    # Within a class too: no example is favoured by more than one.
    taken = got.inputs.flatten().long().bincount(minlength=len(labels))
    for label in set(labels):
        own = taken[data.labels == label]
        assert int(own.max()) - int(own.min()) <= 1


def test_the_class_with_one_more_example_varies() -> None:
    # 3 examples of 2 classes: 2 and 1.
    counts = {
        tuple(balanced(numbered(0, 1, 1), seed).label_counts(2).tolist()) for seed in range(20)
    }
    assert counts == {(1, 2), (2, 1)}


def test_a_client_without_examples_gets_none() -> None:
    nobody = Examples(torch.zeros(0, 1), torch.zeros(0, dtype=torch.int64))
    assert len(balanced(nobody)) == 0


def chunk(size: int, label: int) -> Examples:
    """Examples of one label, whose inputs are 0, 1, 2, ..."""
    return Examples(torch.arange(float(size))[:, None], torch.full((size,), label))


def after(age: int, former: Examples, seed: int = 0) -> DefenseContext:
    """The context `age` rounds after a change in round 4."""
    return DefenseContext(4 + age, client(1), Seed(seed), PreviousData(former, 4))


def old_ones(smoothing: ChunkSmoothing, size: int, former: int, age: int) -> int:
    """Count the training examples with the label of the previous chunk."""
    mixed = smoothing.on_data(chunk(size, 1), after(age, chunk(former, 0)))
    assert len(mixed) == size
    return int((mixed.labels == 0).sum())


def test_phases_the_previous_chunk_out_in_equal_steps() -> None:
    # Of 12 examples over 5 rounds: 5/6, 4/6, 3/6, 2/6, 1/6 of 12, then none.
    counts = [old_ones(ChunkSmoothing(rounds=5), 12, 12, age) for age in range(8)]
    assert counts == [10, 8, 6, 4, 2, 0, 0, 0]


def test_without_a_previous_chunk_nothing_changes() -> None:
    data = chunk(12, 1)
    assert ChunkSmoothing().on_data(data, DefenseContext(4, client(1), Seed(0))) is data


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 8), st.integers(0, 9))
def test_draws_without_replacement(size: int, former: int, rounds: int, age: int) -> None:
    data, before = chunk(size, 1), chunk(former, 0)
    mixed = ChunkSmoothing(rounds).on_data(data, after(age, before))
    taken = list(zip(mixed.inputs.flatten().tolist(), mixed.labels.tolist(), strict=True))
    assert len(set(taken)) == len(taken) == size
    there = {(float(n), 1) for n in range(size)} | {(float(n), 0) for n in range(former)}
    assert set(taken) <= there


def test_says_that_the_final_composition_is_not_hidden() -> None:
    promise = ChunkSmoothing(rounds=4).promise(RunParameters(rounds=9, participation=1.0))
    assert promise.startswith("no formal promise")
    assert "over 4 rounds" in promise
