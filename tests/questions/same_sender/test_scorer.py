"""Scores of linked targets equal the numbers worked out by hand."""

from collections.abc import Mapping

import pytest
import torch

from overheard.core.errors import ClaimError, NeedsError
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.scorer import Score
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.same_sender.scorer import SameSenderScorer

SCORER = SameSenderScorer()
OWN, *OTHERS = (Party(f"anon/0-{number}") for number in range(5))


def truth_of(users: Mapping[Party, str]) -> GroundTruth:
    return GroundTruth(Facts(UsersOfClients(users)))


TRUTH = truth_of(dict(zip((OWN, *OTHERS), "uvuwu", strict=True)))


def scores(claim: SameSender, truth: GroundTruth = TRUTH) -> tuple[Score, ...]:
    true = SCORER.true_claim(truth, OWN, (0,), claim)
    return SCORER.score(claim, true, SCORER.guesses(true, Knowledge(classes=2)))


def compared(*numbers: float) -> SameSender:
    return SameSender(tuple(OTHERS[: len(numbers)]), torch.tensor(numbers, dtype=torch.float32))


def test_the_truth_marks_targets_of_the_same_user() -> None:
    assert SCORER.true_claim(TRUTH, OWN, (0,), compared(0, 0, 0, 0)).numbers() == (0, 1, 0, 1)


def test_average_precision_is_compared_with_a_random_order() -> None:
    # Order: v u u w, so ranks 2 and 3: (1/2 + 2/3) / 2 = 7/12. In a random order the 6 pairs of
    # ranks are equally likely: 1, 5/6, 3/4, 7/12, 1/2 and 5/12 have the mean 49/72.
    (got,) = scores(compared(9, 5, 1, 4))
    assert got.value == pytest.approx(7 / 12)
    assert got.best_uninformed == pytest.approx(49 / 72)


def test_without_both_kinds_of_targets_there_is_no_score() -> None:
    assert scores(compared(1.0)) == ()
    same = truth_of(dict.fromkeys((OWN, *OTHERS), "u"))
    assert scores(compared(1, 2, 3, 4), same) == ()


def test_refuses_a_comparison_with_a_target_missing_from_the_truth() -> None:
    short = truth_of({OWN: "u"})
    with pytest.raises(NeedsError, match="anon/0-1"):
        SCORER.true_claim(short, OWN, (0,), compared(1.0))


def test_refuses_a_claim_about_other_targets_than_the_truth() -> None:
    true = SCORER.true_claim(TRUTH, OWN, (0,), compared(0, 0, 0, 0))
    guesses = SCORER.guesses(true, Knowledge(classes=2))
    with pytest.raises(ClaimError, match="different others"):
        SCORER.score(compared(1.0, 2.0), true, guesses)
