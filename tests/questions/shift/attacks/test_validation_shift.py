"""Validation followed round by round, on two classes by hand and on digits."""

from math import log, nan

import pytest
import torch
from torch import nn

from overheard.core.attack import missing_needs
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.shift.attacks.validation_shift import ValidationShift, series
from tests.worlds.rivals import KNOWLEDGE, SINCE, overheard_by_rival

ONE = client(0)


def build() -> nn.Module:
    return nn.Linear(1, 2)


SHOWN = Knowledge(2, build, Examples(torch.zeros(4, 1), torch.tensor([0, 0, 0, 1])))
"""Three examples of class 0 and one of class 1, of which a model says only its bias."""


def saying(*odds: float) -> View:
    """The server reads one client, whose model takes class 0 for so much likelier by round."""
    start = {"weight": torch.zeros(2, 1), "bias": torch.zeros(2)}
    said = []
    for number, odd in enumerate(odds):
        delta = {"weight": torch.zeros(2, 1), "bias": torch.tensor([log(odd), 0.0])}
        said.append(Message(number, SERVER, frozenset({ONE}), Broadcast(start)))
        said.append(Message(number, ONE, frozenset({SERVER}), Update(delta, 5)))
    return View(frozenset({SERVER}), tuple(said))


def told(attack, view, target=COHORT, knowledge=KNOWLEDGE):
    return attack.infer(view, [target], knowledge, Seed(0))[target].evidence


def test_loss_is_the_mean_cross_entropy_of_each_rounds_model():
    # Odds of 3: 3/4 and 1/4, so the loss is (3 ln 4/3 + ln 4) / 4. Odds of 1: ln 2.
    values = series(saying(3, 1), ONE, SHOWN)
    assert values == pytest.approx({0: (3 * log(4 / 3) + log(4)) / 4, 1: log(2)}, rel=1e-6)


def test_accuracy_is_the_share_of_examples_ranked_right():
    assert series(saying(3, 1 / 3), ONE, SHOWN, measure="accuracy") == {0: 0.75, 1: 0.25}


@pytest.mark.parametrize("measure", ["loss", "accuracy"])
def test_a_model_that_says_no_number_has_no_value(measure):
    assert series(saying(3, nan, 3), ONE, SHOWN, measure=measure).keys() == {0, 2}


def test_its_trend_starts_with_the_first_model():
    # Accuracy 3/4 thrice, then 1/4: the line is at 3/4. One round sooner than `shift`.
    evidence = told(ValidationShift("accuracy", trend=3), saying(3, 3, 3, 1 / 3), ONE, SHOWN)
    assert evidence.rounds == (3,)
    assert evidence.statistic == pytest.approx((0.5,))
    with pytest.raises(NeedsError, match=r"needs 4 rounds on end.*reads 3"):
        told(ValidationShift("accuracy", trend=3), saying(3, 3, 3), ONE, SHOWN)


def test_examples_without_a_class_are_a_missing_need():
    one_class = Knowledge(2, build, Examples(torch.zeros(3, 1), torch.zeros(3).long()))
    missing = missing_needs(ValidationShift(), saying(3), ONE, one_class)
    assert missing == ("labelled auxiliary examples of every class",)


def test_refuses_a_line_that_nothing_determines():
    with pytest.raises(ValueError, match="2 rounds or more, got 1"):
        ValidationShift(trend=1)


FIRST = 5
"""The first round of which there is a statistic: before it, five give the trend."""


@pytest.mark.parametrize(
    "attack", [ValidationShift(), ValidationShift(extract=False)], ids=repr
)
def test_a_strong_shift_breaks_more_than_where_nothing_changes(attack):
    for seed in range(2):
        loud, quiet = (
            told(attack, overheard_by_rival(even, seed)).statistic for even in (1.0, None)
        )
        new = SINCE - FIRST
        assert loud[:new] == quiet[:new]
        assert max(loud[new : new + 2]) > 3 * max(quiet[new : new + 2])
