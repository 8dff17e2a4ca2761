from dataclasses import replace

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, client
from overheard.core.truth import GroundTruth
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.scorer import MembershipScorer

SCORER = MembershipScorer()

TRUTH = GroundTruth(
    {(0, client(0)): torch.ones(2, dtype=torch.int64)},
    {},
    members={client(0): (0, 3), client(1): (1,)},
)


def figures(own: list[float], others: list[float]) -> dict[str, float]:
    scores = torch.tensor([*own, *others])
    true = torch.tensor([1.0] * len(own) + [-1.0] * len(others))
    guesses = SCORER.guesses(Membership(true), Knowledge(2))
    told = SCORER.score(Membership(scores), Membership(true), guesses)
    return {score.name: score.value for score in told}


def true_of(who) -> list[float]:
    return SCORER.truth(TRUTH, who, (0,), Membership(torch.zeros(5))).scores.tolist()


def test_the_truth_tells_own_records_from_those_of_others_and_of_nobody() -> None:
    assert true_of(client(0)) == [1, 0, -1, 1, -1]
    assert true_of(client(1)) == [0, 1, -1, 0, -1]
    assert true_of(COHORT) == [1, 1, -1, 1, -1]


def test_records_of_observers_and_those_of_which_nobody_tells_count_as_neither() -> None:
    rest = TRUTH.without((client(1),))
    true = SCORER.truth(rest, client(0), (0,), Membership(torch.zeros(5))).scores.tolist()
    assert true == [1, 0, -1, 1, -1]
    true = SCORER.truth(rest, COHORT, (0,), Membership(torch.zeros(5))).scores.tolist()
    assert true == [1, 0, -1, 1, -1]
    aside = replace(TRUTH, set_aside=frozenset({2}))
    true = SCORER.truth(aside, client(0), (0,), Membership(torch.zeros(5))).scores.tolist()
    assert true == [1, 0, 0, 1, -1]


def test_who_holds_none_of_them_is_no_riddle_and_has_no_score() -> None:
    none = replace(TRUTH, members={**TRUTH.members, client(2): ()})
    asked = Membership(torch.zeros(5))
    true = SCORER.truth(none, client(2), (0,), asked)
    assert true.scores.tolist() == [0, 0, -1, 0, -1]
    assert SCORER.score(asked, true, SCORER.guesses(true, Knowledge(2))) == ()


def test_without_that_truth_nothing_is_scored() -> None:
    with pytest.raises(NeedsError, match="which records client/2 trained on"):
        true_of(client(2))


def test_records_of_others_count_as_neither() -> None:
    true = torch.tensor([1.0, 0.0, -1.0])
    guesses = SCORER.guesses(Membership(true), Knowledge(2))
    for middle in (-9.0, 9.0):
        claim = Membership(torch.tensor([1.0, middle, 0.0]))
        told = SCORER.score(claim, Membership(true), guesses)
        assert [score.value for score in told] == [1.0, 1.0]


def test_pairs_are_told_apart_by_hand() -> None:
    # Of six pairs 3 > 2, 3 > 1, 3 > 0 and 1 > 0 are right, 1 and 1 tie, 1 < 2 is wrong.
    told = figures([3.0, 1.0], [2.0, 1.0, 0.0])
    assert told["membership_auc"] == pytest.approx(4.5 / 6)
    # Both own ones are above 0, and one of three others is not.
    assert told["membership_accuracy"] == pytest.approx((1 + 1 / 3) / 2)


def test_rates_that_so_few_others_cannot_tell_are_left_out() -> None:
    assert "tpr_at_1_percent" not in figures([1.0], [0.0] * 99)
    assert "tpr_at_1_percent" in figures([1.0], [0.0] * 100)
    assert "tpr_at_0.1_percent" not in figures([1.0], [0.0] * 999)


def test_the_rate_of_true_positives_is_of_those_above_all_but_one_in_a_hundred() -> None:
    others = [float(number) for number in range(200)]
    # All but two of 200 lie at 197 or below: 197.5 and more are above them.
    told = figures([300.0, 198.5, 197.5, 196.0], others)
    assert told["tpr_at_1_percent"] == 0.75


def test_ties_at_the_threshold_are_taken_in_like_parts() -> None:
    # One other lies above; of the 100 at 5 one more may: so a hundredth of the own there.
    others = [9.0] + [5.0] * 100 + [0.0] * 99
    assert figures([5.0, 9.5], others)["tpr_at_1_percent"] == pytest.approx((1 + 0.01) / 2)


def test_a_guesser_gets_what_is_told_beside() -> None:
    told = figures([0.0] * 10, [0.0] * 1000)
    assert told["membership_auc"] == 0.5
    assert told["membership_accuracy"] == 0.5
    assert told["tpr_at_1_percent"] == pytest.approx(0.01)
    assert told["tpr_at_0.1_percent"] == pytest.approx(0.001)
