"""Scores of claims about identity match values worked by hand."""

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.parties import client
from overheard.core.scorer import Score
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth
from overheard.questions.identity.claim import Identity
from overheard.questions.identity.scorer import IdentityScorer

SCORER = IdentityScorer()
USERS = tuple("abcdefgh")
TRUTH = GroundTruth(Facts(UsersOfClients({client(0): "c", client(1): "unknown"})))
ONE = Examples(torch.zeros(1, 2), torch.zeros(1, dtype=torch.int64))


def scores(
    claim: Identity, target: int = 0, known: tuple[str, ...] = USERS
) -> dict[str, Score]:
    true = SCORER.true_claim(TRUTH, client(target), (0,), claim)
    knowledge = Knowledge(2, facts=Facts(KnownUsers(dict.fromkeys(known, ONE))))
    guesses = SCORER.guesses(true, knowledge)
    return {score.name: score for score in SCORER.score(claim, true, guesses)}


def claim(*numbers: float, unseen: float | None = None) -> Identity:
    return Identity(USERS[: len(numbers)], torch.tensor(numbers, dtype=torch.float32), unseen)


def test_scores_the_rank_of_the_true_user_beside_a_random_order() -> None:
    # Only a = 0.9 is above c = 0.7: rank 2. At random: 1/8, 5/8, and (1 + 1/2 + .. +
    # 1/8) / 8 = 2.717857 / 8.
    got = scores(claim(0.9, 0.1, 0.7, 0.2, 0.3, 0.0, 0.0, 0.0))
    assert [got[name].value for name in ("top1", "top5", "reciprocal_rank")] == [0, 1, 0.5]
    uninformed = [got[name].best_uninformed for name in ("top1", "top5", "reciprocal_rank")]
    assert uninformed == pytest.approx([1 / 8, 5 / 8, 2.717857 / 8])
    assert list(got) == ["top1", "top5", "reciprocal_rank"]


def test_counts_a_tie_for_the_first_rank_as_half_a_hit() -> None:
    assert scores(claim(0.7, 0.1, 0.7, 0, 0, 0, 0, 0))["top1"].value == 0.5


def test_an_unknown_user_has_no_rank() -> None:
    assert scores(claim(*[0.0] * 8), target=1) == {}


def test_scores_the_probability_of_an_unknown_user_for_every_target() -> None:
    # A claim of 0.2 is off by 0.2 for c and by 0.8 for the unknown user.
    for target, error in ((0, 0.04), (1, 0.64)):
        got = scores(claim(*[0.0] * 8, unseen=0.2), target)["unseen"]
        assert got.value == pytest.approx(error)
        assert (got.best_uninformed, got.better) == (0.25, "lower")


def test_a_known_user_missing_from_the_claim_scores_zero() -> None:
    got = scores(claim(0.9, 0.1))
    assert [score.value for score in got.values()] == [0, 0, 0]
    assert got["top1"].best_uninformed == pytest.approx(1 / 8)


def test_without_known_users_there_is_no_uninformed_guess() -> None:
    got = scores(claim(0.1, 0.2, 0.9), known=())
    assert got["top1"].value == 1
    assert got["top1"].best_uninformed is None


def test_names_the_target_and_the_setting_if_the_truth_lacks_its_user() -> None:
    with pytest.raises(NeedsError, match=r"client/7.*data\.people"):
        SCORER.true_claim(TRUTH, client(7), (0,), claim(0.0))
