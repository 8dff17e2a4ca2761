import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.linkage.known_updates import KnownUpdates
from overheard.questions.identity.estimators.user_classes import (
    NO_UPDATE_SCORE,
    build_user_classes,
)

NAMES = ("ann", "ben", "cid", "dot", "eve")
"""The last two are holdout users."""


def known(*number: int) -> KnownUpdates:
    nothing = torch.zeros(len(number), dtype=torch.long)
    return KnownUpdates(
        torch.zeros(len(number), 2), torch.tensor(number), nothing, nothing, NAMES, 3
    )


def test_omits_users_without_updates_and_merges_holdout_users() -> None:
    classes = build_user_classes(known(2, 0, 4, 3, 0), "me")
    assert classes.class_users.tolist() == [0, 2]
    assert classes.labels.tolist() == [1, 0, 2, 2, 0]
    assert classes.has_unknown_class
    assert classes.count == 3


def test_a_claim_ranks_users_without_updates_last() -> None:
    claim = build_user_classes(known(0, 2, 3), "me").build_claim(
        torch.tensor([-3.0, 2.0, 9.0]), 0.25
    )
    assert claim.users == ("ann", "ben", "cid")
    assert claim.scores.tolist() == [-3, NO_UPDATE_SCORE, 2]
    assert claim.unseen == 0.25


def test_no_score_is_below_that_of_users_without_updates() -> None:
    claim = build_user_classes(known(0, 2), "me").build_claim(torch.tensor([-torch.inf, 0.0]))
    assert claim.scores.tolist() == [NO_UPDATE_SCORE, NO_UPDATE_SCORE, 0]


def test_refuses_a_single_user() -> None:
    with pytest.raises(NeedsError, match=r"me needs .* has them of \['ben'\]"):
        build_user_classes(known(1, 1, 4), "me")
