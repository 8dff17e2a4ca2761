"""Of whom something is known there are prior examples, and each is known in one way."""

from typing import Any

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.known_users import KnownUsers
from overheard.core.parties import shadow

SOME = Examples(torch.zeros(2, 1), torch.tensor([0, 1]))


def test_a_user_may_be_named_or_takes_no_part() -> None:
    with pytest.raises(ValueError, match=r"none of those with priors, got \['ann'\]"):
        KnownUsers({"ann": SOME, "bob": SOME}, {"ann": SOME})


@pytest.mark.parametrize(
    "told",
    [
        {"devices": {shadow(0): "eva"}},
        {"embeddings": {"eva": torch.zeros(3)}},
        {"attributes": {"hand": {"ann": "left", "eva": "right"}}},
    ],
    ids=["device", "embedding", "attribute"],
)
def test_of_whom_there_is_no_prior_nothing_is_known(told: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"nothing is known of \['eva'\]: give prior examples"):
        KnownUsers({"ann": SOME}, {"bob": SOME}, **told)
    KnownUsers({"ann": SOME}, {"eva": SOME}, **told)


def test_those_who_may_be_named_come_first() -> None:
    known = KnownUsers({"cem": SOME, "ann": SOME}, {"bob": SOME})
    assert list(known.examples()) == ["cem", "ann", "bob"]
    assert all(one is SOME for one in known.examples().values())


def test_at_first_nobody_is_known() -> None:
    assert KnownUsers().examples() == {}
    assert KnownUsers().devices == {}
