"""Validation by round, on two classes worked by hand and on digits."""

from math import log, nan

import pytest
import torch
from torch import nn

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.shift.attacks.validation_shift import (
    ValidationShift,
    validation_series,
)
from tests.runs.two_clients import KNOWLEDGE, SHIFT_ROUND, simulate_client_view

ONE = client(0)


def build() -> nn.Module:
    return nn.Linear(1, 2)


SHOWN = Knowledge(2, build, Examples(torch.zeros(4, 1), torch.tensor([0, 0, 0, 1])))
"""Three examples of class 0 and one of class 1; the model outputs only its bias."""


def view_with_odds(*odds: float) -> View:
    """Build a view of one client whose model has these odds of class 0 by round."""
    start = {"weight": torch.zeros(2, 1), "bias": torch.zeros(2)}
    said = []
    for number, odd in enumerate(odds):
        delta = {"weight": torch.zeros(2, 1), "bias": torch.tensor([log(odd), 0.0])}
        said.append(Message(number, SERVER, frozenset({ONE}), Broadcast(start)))
        said.append(Message(number, ONE, frozenset({SERVER}), Update(delta, 5)))
    return View(frozenset({SERVER}), tuple(said))


def statistic_of(attack, view, target=COHORT, knowledge=KNOWLEDGE):
    return attack.infer(view, [target], knowledge, Seed(0))[target].evidence


def test_loss_is_the_mean_cross_entropy_of_each_rounds_model():
    # Odds of 3: 3/4 and 1/4, so the loss is (3 ln 4/3 + ln 4) / 4. Odds of 1: ln 2.
    values = validation_series(view_with_odds(3, 1), ONE, SHOWN)
    assert values == pytest.approx({0: (3 * log(4 / 3) + log(4)) / 4, 1: log(2)}, rel=1e-6)


def test_accuracy_is_the_share_of_examples_ranked_right():
    assert validation_series(view_with_odds(3, 1 / 3), ONE, SHOWN, measure="accuracy") == {
        0: 0.75,
        1: 0.25,
    }


@pytest.mark.parametrize("measure", ["loss", "accuracy"])
def test_a_model_with_nan_outputs_has_no_value(measure):
    assert validation_series(view_with_odds(3, nan, 3), ONE, SHOWN, measure=measure).keys() == {
        0,
        2,
    }


def test_its_trend_starts_with_the_first_model():
    # Accuracy 3/4 thrice, then 1/4: the line is at 3/4. One round earlier than `shift`.
    evidence = statistic_of(
        ValidationShift("accuracy", trend=3), view_with_odds(3, 3, 3, 1 / 3), ONE, SHOWN
    )
    assert evidence.rounds == (3,)
    assert evidence.statistic == pytest.approx((0.5,))
    with pytest.raises(NeedsError, match=r"needs 4 consecutive rounds.*reads 3"):
        statistic_of(ValidationShift("accuracy", trend=3), view_with_odds(3, 3, 3), ONE, SHOWN)


FIRST = 5
"""The first round with a statistic, after five rounds for the trend."""


@pytest.mark.parametrize(
    "attack", [ValidationShift(), ValidationShift(extract=False)], ids=repr
)
def test_a_strong_shift_breaks_the_trend_more_than_no_change(attack):
    for seed in range(2):
        loud, quiet = (
            statistic_of(attack, simulate_client_view(even, seed)).statistic
            for even in (1.0, None)
        )
        new = SHIFT_ROUND - FIRST
        assert loud[:new] == quiet[:new]
        assert max(loud[new : new + 2]) > 3 * max(quiet[new : new + 2])
