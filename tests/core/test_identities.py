"""Valid and invalid claims about identity, same sender and attributes."""

import math

import pytest
import torch

from overheard.core.errors import ClaimError
from overheard.core.parties import Party
from overheard.questions.attribute.claim import Attribute
from overheard.questions.identity.claim import Identity
from overheard.questions.same_sender.claim import SameSender

USERS = ("ann", "bob")


@pytest.mark.parametrize(
    ("users", "scores"),
    [
        ((), []),
        (("ann", "ann"), [0.1, 0.2]),
        (USERS, [0.1]),
        (USERS, [0.1, 0.2, 0.3]),
        (USERS, [math.nan, 0.2]),
        (USERS, [math.inf, 0.2]),
        (USERS, [0.1, -math.inf]),
    ],
    ids=[
        "no candidates",
        "repeated",
        "too few",
        "too many",
        "NaN",
        "infinite",
        "minus infinity",
    ],
)
def test_refuses_invalid_scores(users: tuple[str, ...], scores: list[float]) -> None:
    with pytest.raises(ClaimError):
        Identity(users, torch.tensor(scores))
    with pytest.raises(ClaimError):
        SameSender(tuple(map(Party, users)), torch.tensor(scores))


@pytest.mark.parametrize("unseen", [-0.01, 1.01, math.nan])
def test_refuses_an_invalid_probability(unseen: float) -> None:
    with pytest.raises(ClaimError, match="`unseen` must lie in"):
        Identity(USERS, torch.zeros(2), unseen)


@pytest.mark.parametrize(
    ("values", "probabilities"),
    [
        (("left",), [1.0]),
        (("left", "left"), [0.5, 0.5]),
        (("left", "right"), [0.5, 0.6]),
        (("left", "right"), [1.5, -0.5]),
        (("left", "right"), [math.nan, 1.0]),
        (("left", "right"), [1.0]),
    ],
    ids=["one value", "repeated", "above 1", "below 0", "NaN", "too few"],
)
def test_refuses_invalid_probabilities(
    values: tuple[str, ...], probabilities: list[float]
) -> None:
    with pytest.raises(ClaimError):
        Attribute("hand", values, torch.tensor(probabilities))
