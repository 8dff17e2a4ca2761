"""Known users are named right while few strangers pass for one of them."""

import numpy as np
import pytest

from overheard.core.seeds import Seed
from overheard.questions.identity.statistics.open_set import (
    OpenSet,
    identification_rate,
    identified,
    open_set,
)
from overheard.questions.identity.statistics.ranking import rankings
from tests.auditing.recognised import found, run

HELD = OpenSet(
    detection=np.array([0.9, 0.8, 0.7, 0.3]),
    right=np.array([1.0, 0.0, 1.0, 1.0]),
    person=np.array([0, 0, 1, 1]),
    strange=np.array([0.6, 0.5]),
    stranger=np.array([2, 2]),
    known=2,
    unknown=1,
)


@pytest.mark.parametrize(
    ("percent", "rate"),
    [
        (1.0, 2 / 4),  # none of two may pass: above 0.6 lie 0.9, 0.8 and 0.7, two of them right
        (49.0, 2 / 4),
        (50.0, 2 / 4),  # one may: above 0.5 lie the same
        (100.0, 3 / 4),  # all may
    ],
)
def test_the_rate_is_worked_by_hand(percent: float, rate: float) -> None:
    assert identified(HELD, percent) == rate


def test_of_a_hundred_strangers_one_may_pass() -> None:
    strange = np.linspace(0, 0.99, 100)  # the highest 0.99, the next 0.98
    held = OpenSet(np.array([0.985]), np.ones(1), np.zeros(1, int), strange,
                   np.ones(100, int), 1, 1)  # fmt: skip
    assert identified(held, 1.0) == 1
    assert identified(held, 0.9) == 0


def test_the_evidence_is_what_the_claim_says_of_strangers_else_its_highest_score() -> None:
    scores = ((0.1, 0.7, 0.7, 0.0), "b"), ((0.9, 0.0, 0.0, 0.0), "stranger")
    said = [found(s, who, n, unseen=0.3 + 0.5 * n) for n, (s, who) in enumerate(scores)]
    (told,) = map(open_set, rankings(said))
    assert told is not None
    assert told.detection == pytest.approx([0.7])
    assert told.strange == pytest.approx([0.2])
    assert told.right == [0.5]  # b shares the first place with c
    silent = [found(s, who, n) for n, (s, who) in enumerate(scores)]
    (bare,) = map(open_set, rankings(silent))
    assert bare is not None
    assert (bare.detection.tolist(), bare.strange.tolist()) == ([0.7], [0.9])


def test_without_strangers_there_is_no_open_set() -> None:
    (ranking,) = rankings([found((1, 0, 0, 0), "a", 0)])
    assert open_set(ranking) is None


def test_whom_scores_tell_apart_is_found_and_whom_they_do_not_is_not() -> None:
    for strength, low, high in ((6.0, 0.8, 1.0), (0.0, 0.0, 0.1)):
        held = [open_set(one) for one in rankings(run(strength, strangers=6, updates=20))]
        told = identification_rate([one for one in held if one], 1.0, Seed(0))
        assert low <= told.mean <= high
        assert told.low is not None
        assert told.low <= told.mean <= told.high
