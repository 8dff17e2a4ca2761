"""Scores of claimed attributes equal the numbers worked out by hand."""

from math import log

import pytest
import torch

from overheard.core.errors import ClaimError, NeedsError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.parties import client
from overheard.core.scorer import Score
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth
from overheard.questions.attribute.claim import Attribute
from overheard.questions.attribute.scorer import AttributeScorer

SCORER = AttributeScorer()
AGES = {"a": "young", "b": "young", "c": "young", "d": "old", "e": "ancient"}
TRUTH = GroundTruth(
    Facts(
        UsersOfClients({client(0): "d", client(1): "e"}),
        Attributes({"age": AGES, "gender": {}}),
    ),
)
ONE = Examples(torch.zeros(1, 2), torch.zeros(1, dtype=torch.int64))
USERS = KnownUsers(
    dict.fromkeys("abcd", ONE), attributes={"age": {user: AGES[user] for user in "abcd"}}
)


def claim(young: float, attribute: str = "age") -> Attribute:
    return Attribute(attribute, ("young", "old"), torch.tensor([young, 1 - young]))


def scores(claimed: Attribute, target: int = 0, people: KnownUsers = USERS) -> dict[str, Score]:
    true = SCORER.true_claim(TRUTH, client(target), (0,), claimed)
    guesses = SCORER.guesses(true, Knowledge(2, facts=Facts(people)))
    return {score.name: score for score in SCORER.score(claimed, true, guesses)}


def test_both_scores_have_the_majority_and_uniform_guesses() -> None:
    # Three known users are young, one is old: with 1 added each, 4/6 and 2/6. The truth is old.
    got = scores(claim(0.25))
    assert got["accuracy"].value == 1
    assert dict(got["accuracy"].uninformed) == {"majority": 0, "uniform": 0.5}
    assert got["log_loss"].value == pytest.approx(-log(0.75))
    assert got["log_loss"].uninformed["majority"] == pytest.approx(-log(2 / 6))
    assert got["log_loss"].uninformed["uniform"] == pytest.approx(log(2))
    assert got["log_loss"].better == "lower"


def test_tied_values_share_the_accuracy() -> None:
    assert scores(claim(0.5))["accuracy"].value == 0.5


def test_certainty_in_a_wrong_value_has_a_finite_cost() -> None:
    assert scores(claim(1.0))["log_loss"].value == pytest.approx(-log(1e-12))


def test_a_true_value_that_is_not_claimed_comes_last_and_counts_as_wrong() -> None:
    true = SCORER.true_claim(TRUTH, client(1), (0,), claim(0.5))
    assert true.values == ("young", "old", "ancient")
    assert true.numbers() == (0, 0, 1)
    got = scores(claim(0.5), target=1)
    assert got["accuracy"].value == 0
    assert got["accuracy"].uninformed["uniform"] == pytest.approx(1 / 3)


def test_without_known_users_the_only_guess_is_uniform() -> None:
    assert scores(claim(0.5), people=KnownUsers())["accuracy"].uninformed.keys() == {"uniform"}


def test_refuses_an_attribute_missing_from_the_truth_and_lists_the_others() -> None:
    for attribute in ("gender", "height"):
        with pytest.raises(NeedsError, match=f"no {attribute} of client/0; .* age, gender"):
            SCORER.true_claim(TRUTH, client(0), (0,), claim(0.5, attribute))


def test_refuses_a_claim_about_another_attribute() -> None:
    true = SCORER.true_claim(TRUTH, client(0), (0,), claim(0.5))
    guesses = SCORER.guesses(true, Knowledge(classes=2))
    with pytest.raises(ClaimError, match="about gender, the truth about age"):
        SCORER.score(claim(0.5, "gender"), true, guesses)
