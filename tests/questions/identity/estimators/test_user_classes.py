import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.linkage.known_updates import KnownUpdates
from overheard.questions.identity.estimators.user_classes import UNHEARD, classes_of

NAMES = ("ann", "ben", "cid", "dot", "eve")
"""The last two are holdout users."""


def known(*people: int) -> KnownUpdates:
    nothing = torch.zeros(len(people), dtype=torch.long)
    return KnownUpdates(
        torch.zeros(len(people), 2), torch.tensor(people), nothing, nothing, NAMES, 3
    )


def test_omits_users_without_updates_and_merges_holdout_users() -> None:
    classes = classes_of(known(2, 0, 4, 3, 0), "me")
    assert classes.heard.tolist() == [0, 2]
    assert classes.labels.tolist() == [1, 0, 2, 2, 0]
    assert classes.is_open
    assert classes.count == 3


def test_without_holdout_users_there_is_no_unknown_class() -> None:
    classes = classes_of(known(1, 0), "me")
    assert not classes.is_open
    assert classes.count == 2


def test_a_claim_ranks_users_without_updates_last() -> None:
    claim = classes_of(known(0, 2, 3), "me").identity(torch.tensor([-3.0, 2.0, 9.0]), 0.25)
    assert claim.users == ("ann", "ben", "cid")
    assert claim.scores.tolist() == [-3, UNHEARD, 2]
    assert claim.unseen == 0.25


def test_no_score_is_below_that_of_users_without_updates() -> None:
    claim = classes_of(known(0, 2), "me").identity(torch.tensor([-torch.inf, 0.0]))
    assert claim.scores.tolist() == [UNHEARD, UNHEARD, 0]


def test_refuses_a_single_user() -> None:
    with pytest.raises(NeedsError, match=r"me needs .* has them of \['ben'\]"):
        classes_of(known(1, 1, 4), "me")
