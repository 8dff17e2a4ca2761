import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.linkage.prior_updates import KnownUpdates
from overheard.questions.identity.estimators.user_classes import UNHEARD, classes_of

NAMES = ("ann", "ben", "cid", "dot", "eve")
"""The last two are holdout users."""


def known(*people: int) -> KnownUpdates:
    nothing = torch.zeros(len(people), dtype=torch.long)
    return KnownUpdates(
        torch.zeros(len(people), 2), torch.tensor(people), nothing, nothing, NAMES, 3
    )


def test_a_user_without_updates_is_no_class_and_holdout_users_are_one() -> None:
    classes = classes_of(known(2, 0, 4, 3, 0), "me")
    assert classes.heard.tolist() == [0, 2]
    assert classes.labels.tolist() == [1, 0, 2, 2, 0]
    assert classes.is_open
    assert classes.count == 3


def test_without_holdout_users_the_world_is_closed() -> None:
    classes = classes_of(known(1, 0), "me")
    assert not classes.is_open
    assert classes.count == 2


def test_a_claim_names_all_and_puts_the_unheard_last() -> None:
    claim = classes_of(known(0, 2, 3), "me").identity(torch.tensor([-3.0, 2.0, 9.0]), 0.25)
    assert claim.users == ("ann", "ben", "cid")
    assert claim.scores.tolist() == [-3, UNHEARD, 2]
    assert claim.unseen == 0.25


def test_nobody_stands_below_the_unheard() -> None:
    claim = classes_of(known(0, 2), "me").identity(torch.tensor([-torch.inf, 0.0]))
    assert claim.scores.tolist() == [UNHEARD, UNHEARD, 0]


def test_one_user_is_nobody_to_tell_apart() -> None:
    with pytest.raises(NeedsError, match=r"me needs .* has them of \['ben'\]"):
        classes_of(known(1, 1, 4), "me")
