"""What is claimed of who a target is, is scored by the numbers one gets by hand."""

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_users import KnownUsers
from overheard.core.parties import client
from overheard.core.scorer import Score
from overheard.core.truth import GroundTruth
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.scorer import IdentityScorer

SCORER = IdentityScorer()
USERS = tuple("abcdefgh")
TRUTH = GroundTruth({}, {}, users={client(0): "c", client(1): "stranger"})
ONE = Examples(torch.zeros(1, 2), torch.zeros(1, dtype=torch.int64))


def scores(
    claim: Identity, target: int = 0, known: tuple[str, ...] = USERS
) -> dict[str, Score]:
    true = SCORER.truth(TRUTH, client(target), (0,), claim)
    knowledge = Knowledge(2, people=KnownUsers(dict.fromkeys(known, ONE)))
    guesses = SCORER.guesses(true, knowledge)
    return {score.name: score for score in SCORER.score(claim, true, guesses)}


def claim(*numbers: float, unseen: float | None = None) -> Identity:
    return Identity(USERS[: len(numbers)], torch.tensor(numbers, dtype=torch.float32), unseen)


def test_the_rank_of_the_true_user_is_told_beside_a_random_order() -> None:
    # c = 0.7 stands behind a = 0.9 alone: rank 2. At random: 1/8, 5/8, and (1 + 1/2 + .. +
    # 1/8) / 8 = 2.717857 / 8.
    got = scores(claim(0.9, 0.1, 0.7, 0.2, 0.3, 0.0, 0.0, 0.0))
    assert [got[name].value for name in ("top1", "top5", "reciprocal_rank")] == [0, 1, 0.5]
    blinds = [got[name].blind for name in ("top1", "top5", "reciprocal_rank")]
    assert blinds == pytest.approx([1 / 8, 5 / 8, 2.717857 / 8])
    assert got.keys() == {"top1", "top5", "reciprocal_rank"}


def test_a_tie_for_the_first_place_is_half_a_hit() -> None:
    assert scores(claim(0.7, 0.1, 0.7, 0, 0, 0, 0, 0))["top1"].value == 0.5


def test_scores_all_alike_gain_nothing() -> None:
    for score in scores(claim(*[3.0] * 8)).values():
        assert score.gain == 0


def test_five_names_of_five_say_nothing_and_are_left_out() -> None:
    assert "top5" not in scores(claim(1, 0, 0, 0, 0), known=USERS[:5])


def test_a_stranger_has_no_rank() -> None:
    assert scores(claim(*[0.0] * 8), target=1) == {}


def test_the_chance_of_a_stranger_is_told_of_everybody() -> None:
    # Said 0.2: off by 0.2 for c, by 0.8 for the stranger.
    for target, error in ((0, 0.04), (1, 0.64)):
        got = scores(claim(*[0.0] * 8, unseen=0.2), target)["unseen"]
        assert got.value == pytest.approx(error)
        assert (got.blind, got.better) == (0.25, "lower")


def test_to_leave_a_known_user_out_is_to_miss_it() -> None:
    got = scores(claim(0.9, 0.1))
    assert [score.value for score in got.values()] == [0, 0, 0]
    assert got["top1"].blind == pytest.approx(1 / 8)


def test_without_prior_users_nobody_can_guess_blindly() -> None:
    got = scores(claim(0.1, 0.2, 0.9), known=())
    assert got["top1"].value == 1
    assert got["top1"].blind is None


def test_a_truth_that_does_not_say_who_it_is_is_named_with_the_mend() -> None:
    with pytest.raises(NeedsError, match=r"client/7.*data\.people"):
        SCORER.truth(TRUTH, client(7), (0,), claim(0.0))
