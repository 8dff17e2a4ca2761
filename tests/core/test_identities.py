"""Valid and invalid claims about identity, same sender and attributes."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import ClaimError
from overheard.core.parties import Party, client
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


@given(st.lists(st.floats(-1000, 1000, width=32), min_size=1, max_size=6))
def test_takes_any_finite_scores(scores: list[float]) -> None:
    users = tuple(f"user {number}" for number in range(len(scores)))
    claim = Identity(users, torch.tensor(scores))
    assert claim.candidates() == users
    assert claim.numbers() == tuple(torch.tensor(scores).tolist())
    assert claim.unknown_probability() is None


@pytest.mark.parametrize("unseen", [-0.01, 1.01, math.nan])
def test_refuses_an_invalid_probability(unseen: float) -> None:
    with pytest.raises(ClaimError, match="`unseen` must lie in"):
        Identity(USERS, torch.zeros(2), unseen)


@pytest.mark.parametrize("unseen", [0.0, 0.5, 1.0])
def test_returns_the_probability_of_an_unknown_user(unseen: float) -> None:
    assert Identity(USERS, torch.zeros(2), unseen).unknown_probability() == unseen


def test_the_candidates_of_a_link_are_other_targets() -> None:
    claim = SameSender((client(3), client(5)), torch.tensor([0.25, -1.0]))
    assert claim.candidates() == (client(3), client(5))
    assert claim.numbers() == (0.25, -1.0)
    assert claim.unknown_probability() is None


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


def test_the_candidates_of_an_attribute_are_its_values() -> None:
    claim = Attribute("hand", ("left", "right"), torch.tensor([0.25, 0.75]))
    assert claim.candidates() == ("left", "right")
    assert claim.numbers() == (0.25, 0.75)
    # Up to rounding.
    Attribute("hand", ("left", "right"), torch.tensor([0.25, 0.75004]))
