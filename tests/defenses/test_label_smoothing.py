"""Label smoothing changes the targets of training and nothing else."""

import math

import pytest
import torch
from torch import nn

from overheard.core.defense import LocalTraining
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.defenses.label_smoothing import LabelSmoothing
from overheard.learning.train import Engine, train_cohort
from overheard.learning.training_job import ClientTask

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
