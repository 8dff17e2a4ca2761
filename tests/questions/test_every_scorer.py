"""What every scorer owes its reader."""

from typing import Any

import pytest
import torch

from overheard.core.claims import Timeline
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_users import KnownUsers
from overheard.core.parties import client
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.truth import GroundTruth
from overheard.plans import kinds
from overheard.questions.attribute.claim import Attribute
from overheard.questions.identity.claim import Identity
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.membership.claim import Membership
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.shift.claim import Shift

SCORERS = kinds.SCORERS.parts()

ORDER_DEPENDENT = {("label_shares", "wasserstein")}
"""Figures that say of themselves that they depend on the order of labels."""

ACROSS_RUNS = {"shift"}
"""Questions whose headline takes many runs, so that no single claim has it."""

BEFORE = torch.tensor([2, 0, 1, 7, 0])
COUNTS = torch.tensor([6, 0, 3, 1, 0])
AUXILIARY = torch.tensor([0, 1, 1, 2, 3, 4, 4, 4])
ORDER = torch.tensor([3, 0, 4, 1, 2])
ROUNDS = (0, 1)
AGES = {"u0": "old", "u1": "young", "u2": "young"}

ASKED = {
    LabelShares: LabelShares(torch.full((5,), 0.2)),
    Shift: Shift(Timeline()),
    Identity: Identity(tuple(AGES), torch.zeros(3)),
    SameSender: SameSender((client(1), client(2)), torch.zeros(2)),
    Membership: Membership(torch.zeros(6)),
    Attribute: Attribute("age", ("old", "young"), torch.tensor([0.5, 0.5])),
}
"""A claim of each kind, of which only what it is about is looked at."""


@pytest.fixture(params=sorted(SCORERS))
def scorer(request: pytest.FixtureRequest) -> Scorer[Any]:
    return SCORERS[request.param]()


def truth_and_guesses(
    scorer: Scorer[Any], before: torch.Tensor, counts: torch.Tensor, labels: torch.Tensor
) -> tuple[Any, Guesses[Any]]:
    held = GroundTruth(
        {(0, client(0)): before, (1, client(0)): counts},
        accuracy={1: 0.5},
        shifts={client(0): (1,)},
        users={client(0): "u0", client(1): "u1", client(2): "u0"},
        attributes={"age": AGES},
        members={client(0): (1, 4), client(1): (0,)},
    )
    auxiliary = Examples(torch.zeros(len(labels), 2), labels)
    people = KnownUsers(dict.fromkeys(AGES, auxiliary), attributes={"age": AGES})
    truth = scorer.truth(held, client(0), ROUNDS, ASKED[scorer.claim])
    knowledge = Knowledge(classes=5, auxiliary=auxiliary, people=people)
    return truth, scorer.guesses(truth, knowledge)


def by_name(scores: tuple[Score, ...]) -> dict[str, Score]:
    named = {score.name: score for score in scores}
    assert len(named) == len(scores), "two scores bear one name"
    return named


def test_says_what_it_measures_and_where_from(scorer: Scorer[Any]) -> None:
    assert (type(scorer).__doc__ or "").strip()
    assert scorer.source.strip()
    truth, _ = truth_and_guesses(scorer, BEFORE, COUNTS, AUXILIARY)
    assert isinstance(truth, scorer.claim)


def test_its_headline_is_scored_and_can_be_guessed_blindly(scorer: Scorer[Any]) -> None:
    truth, guesses = truth_and_guesses(scorer, BEFORE, COUNTS, AUXILIARY)
    for claim in (truth, *guesses.blind.values()):
        scores = by_name(scorer.score(claim, truth, guesses))
        if scorer.name in ACROSS_RUNS:
            assert scorer.headline not in scores
            assert any(score.blinds for score in scores.values())
        else:
            assert scores[scorer.headline].blinds


def test_a_blind_guess_is_the_same_whatever_the_truth(scorer: Scorer[Any]) -> None:
    one, guesses = truth_and_guesses(scorer, BEFORE, COUNTS, AUXILIARY)
    other, others = truth_and_guesses(scorer, COUNTS, BEFORE[ORDER], AUXILIARY)
    if scorer.name in ("label_shares", "shift"):
        assert one.numbers() != other.numbers()
    knowledge = Knowledge(classes=5, auxiliary=Examples(torch.zeros(8, 2), AUXILIARY))
    unasked = scorer.blind(ASKED[scorer.claim], knowledge)
    assert guesses.blind.keys() == others.blind.keys()
    for name, guess in guesses.blind.items():
        assert guess.numbers() == others.blind[name].numbers()
        # What was claimed in place of the truth makes no difference either.
        same = pytest.approx(guess.numbers(), abs=1e-6)
        assert name not in unasked or unasked[name].numbers() == same


def test_nothing_scores_better_than_the_truth(scorer: Scorer[Any]) -> None:
    truth, guesses = truth_and_guesses(scorer, BEFORE, COUNTS, AUXILIARY)
    for score in scorer.score(truth, truth, guesses):
        assert score.gain is None or score.gain >= 0
        for other in (*score.blinds.values(), *score.references.values()):
            assert other >= score.value if score.better == "lower" else other <= score.value


def test_a_blind_value_is_what_the_blind_guess_scores_as_a_claim(scorer: Scorer[Any]) -> None:
    truth, guesses = truth_and_guesses(scorer, BEFORE, COUNTS, AUXILIARY)
    scores = by_name(scorer.score(truth, truth, guesses))
    for name, guess in guesses.blind.items():
        as_claim = by_name(scorer.score(guess, truth, guesses))
        for score in scores.values():
            if name in score.blinds:
                assert as_claim[score.name].value == score.blinds[name]
    for name, guess in guesses.told.items():
        as_claim = by_name(scorer.score(guess, truth, guesses))
        for score in scores.values():
            if name in score.references:
                assert as_claim[score.name].value == score.references[name]


def test_other_names_for_the_labels_change_no_figure(scorer: Scorer[Any]) -> None:
    # Label i of the second world is label ORDER[i] of the first.
    renamed = torch.argsort(ORDER)[AUXILIARY]
    worlds = (
        truth_and_guesses(scorer, BEFORE, COUNTS, AUXILIARY),
        truth_and_guesses(scorer, BEFORE[ORDER], COUNTS[ORDER], renamed),
    )
    before, after = (
        {
            (name, score.name): score.value
            for name, guess in {**guesses.blind, **guesses.told}.items()
            for score in scorer.score(guess, truth, guesses)
            if (scorer.name, score.name) not in ORDER_DEPENDENT
        }
        for truth, guesses in worlds
    )
    assert after == pytest.approx(before, abs=1e-12)
