"""What every scorer and every question must keep to."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from math import isclose
from typing import Any, final, get_args

import torch
from torch import Tensor

from overheard.core.claims import Claim, Timeline
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_users import KnownUsers
from overheard.core.parties import client
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.seeds import Seed
from overheard.core.truth import GroundTruth
from overheard.findings.question import Control, Question
from overheard.questions.attribute.claim import Attribute
from overheard.questions.identity.claim import Identity
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.membership.claim import Membership
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.shift.claim import Shift
from overheard.testing.require import require, require_part

BEFORE = torch.tensor([2, 0, 1, 7, 0])
COUNTS = torch.tensor([6, 0, 3, 1, 0])
AUXILIARY = torch.tensor([0, 1, 1, 2, 3, 4, 4, 4])
ORDER = torch.tensor([3, 0, 4, 1, 2])
ROUNDS = (0, 1)
AGES = {"u0": "old", "u1": "young", "u2": "young"}

ASKED: Mapping[type[Claim], Claim] = {
    LabelShares: LabelShares(torch.full((5,), 0.2)),
    Shift: Shift(Timeline()),
    Identity: Identity(tuple(AGES), torch.zeros(3)),
    SameSender: SameSender((client(1), client(2)), torch.zeros(2)),
    Membership: Membership(torch.zeros(6)),
    Attribute: Attribute("age", ("old", "young"), torch.tensor([0.5, 0.5])),
}
"""A claim of each kind, of which only what it is about is looked at."""

ORDER_DEPENDENT: Mapping[type[Claim], Collection[str]] = {LabelShares: ("wasserstein",)}
"""Figures that say of themselves that they depend on the order of labels."""


@final
@dataclass(frozen=True, eq=False)
class ScorerTrial:
    """A scorer, and what it is asked.

    Args:
        scorer: to be tried.
        asked: a claim, of which only what it is about is looked at.
        order_dependent: names of scores that depend on the order of labels.
        is_across_runs: whether the headline takes many runs, so that no single claim has it.

    """

    # Any: a scorer takes the claims of its own question.
    scorer: Scorer[Any]
    asked: Claim
    order_dependent: Collection[str]
    is_across_runs: bool


ScorerCheck = Callable[[ScorerTrial], None]


def check_scorer(
    scorer: Scorer[Any],
    asked: Claim | None = None,
    *,
    order_dependent: Collection[str] = (),
    is_across_runs: bool = False,
) -> None:
    """Hold a scorer to the contract of scorers.

    It is tried on the truth of a run of two rounds with five labels and three clients, of whom
    client/0 is the target.

    Args:
        scorer: to be tried.
        asked: a claim, of which only what it is about is looked at; may be left out for claims
            of ours.
        order_dependent: names of scores that depend on the order of labels.
        is_across_runs: whether the headline takes many runs, so that no single claim has it.

    Raises:
        AssertionError: saying what it does not keep to.

    """
    trial = scorer_trial(scorer, asked, order_dependent, is_across_runs)
    for check in SCORER_CHECKS:
        check(trial)


def scorer_trial(
    scorer: Scorer[Any],
    asked: Claim | None = None,
    order_dependent: Collection[str] = (),
    is_across_runs: bool = False,
) -> ScorerTrial:
    """Choose what a scorer is asked, where that is left out."""
    claim = asked or ASKED.get(scorer.claim)
    if claim is None:
        raise AssertionError(f"{scorer.name}: give a {scorer.claim.__name__} to ask about")
    return ScorerTrial(
        scorer,
        claim,
        order_dependent or ORDER_DEPENDENT.get(scorer.claim, ()),
        is_across_runs or scorer.claim is Shift,
    )


def says_what_it_measures(trial: ScorerTrial) -> None:
    """See that it says what it measures, and that the truth answers its question."""
    scorer = trial.scorer
    require_part(scorer)
    require(not fields(scorer), f"{scorer.name}: a scorer has no settings")  # type: ignore[arg-type]
    truth, _ = truth_and_guesses(trial, BEFORE, COUNTS, AUXILIARY)
    require(
        isinstance(truth, scorer.claim),
        f"{scorer.name}: the truth is no {scorer.claim.__name__}",
    )


def its_headline_is_scored_and_can_be_guessed_blindly(trial: ScorerTrial) -> None:
    """See that one score tells the question in one sentence, beside a blind guess."""
    scorer = trial.scorer
    truth, guesses = truth_and_guesses(trial, BEFORE, COUNTS, AUXILIARY)
    for claim in (truth, *guesses.blind.values()):
        scores = _by_name(scorer, scorer.score(claim, truth, guesses))
        if trial.is_across_runs:
            require(scorer.headline not in scores, f"{scorer.name} scores its headline alone")
            require(
                any(score.blinds for score in scores.values()),
                f"{scorer.name}: no score stands beside a blind guess",
            )
        else:
            require(
                scorer.headline in scores and scores[scorer.headline].blinds,
                f"{scorer.name}: its headline {scorer.headline!r} is not scored, or stands "
                "beside no blind guess",
            )


def a_blind_guess_is_the_same_whatever_the_truth(trial: ScorerTrial) -> None:
    """See that a guess of one who heard nothing does not know the truth."""
    scorer = trial.scorer
    one, guesses = truth_and_guesses(trial, BEFORE, COUNTS, AUXILIARY)
    other, others = truth_and_guesses(trial, COUNTS, BEFORE[ORDER], AUXILIARY)
    if scorer.claim in (LabelShares, Shift):
        require(one.numbers() != other.numbers(), f"{scorer.name}: every truth is the same")
    knowledge = Knowledge(classes=5, auxiliary=Examples(torch.zeros(8, 2), AUXILIARY))
    unasked = scorer.blind(trial.asked, knowledge)
    message = f"{scorer.name}: a blind guess changes with the truth"
    require(guesses.blind.keys() == others.blind.keys(), message)
    for name, guess in guesses.blind.items():
        require(guess.numbers() == others.blind[name].numbers(), message)
        # What was claimed in place of the truth makes no difference either.
        if name in unasked:
            require(
                len(unasked[name].numbers()) == len(guess.numbers())
                and all(
                    isclose(left, right, rel_tol=1e-6, abs_tol=1e-6)
                    for left, right in zip(
                        unasked[name].numbers(), guess.numbers(), strict=True
                    )
                ),
                f"{scorer.name}: the blind guess {name!r} changes with the claim",
            )


def nothing_scores_better_than_the_truth(trial: ScorerTrial) -> None:
    """See that the truth, as a claim, gets the best of all scores."""
    scorer = trial.scorer
    truth, guesses = truth_and_guesses(trial, BEFORE, COUNTS, AUXILIARY)
    for score in scorer.score(truth, truth, guesses):
        message = f"{scorer.name}: by {score.name!r} a guess is better than the truth"
        require(score.gain is None or score.gain >= 0, message)
        for other in (*score.blinds.values(), *score.references.values()):
            better = score.better == "lower"
            require(other >= score.value if better else other <= score.value, message)


def a_blind_value_is_what_the_guess_scores_as_a_claim(trial: ScorerTrial) -> None:
    """See that guesses are scored as claims are."""
    scorer = trial.scorer
    truth, guesses = truth_and_guesses(trial, BEFORE, COUNTS, AUXILIARY)
    scores = _by_name(scorer, scorer.score(truth, truth, guesses))
    for held, kind in ((guesses.blind, "blinds"), (guesses.told, "references")):
        for name, guess in held.items():
            as_claim = _by_name(scorer, scorer.score(guess, truth, guesses))
            for score in scores.values():
                beside: Mapping[str, float] = getattr(score, kind)
                require(
                    name not in beside or as_claim[score.name].value == beside[name],
                    f"{scorer.name}: {name!r} gets another {score.name!r} as a claim than it "
                    "has as a guess",
                )


def other_names_for_the_labels_change_no_figure(trial: ScorerTrial) -> None:
    """See that the order of labels does not matter, unless a score says so of itself."""
    scorer = trial.scorer
    # Label i of the second world is label ORDER[i] of the first.
    renamed = torch.argsort(ORDER)[AUXILIARY]
    worlds = (
        truth_and_guesses(trial, BEFORE, COUNTS, AUXILIARY),
        truth_and_guesses(trial, BEFORE[ORDER], COUNTS[ORDER], renamed),
    )
    before, after = (
        {
            (name, score.name): score.value
            for name, guess in {**guesses.blind, **guesses.told}.items()
            for score in scorer.score(guess, truth, guesses)
            if score.name not in trial.order_dependent
        }
        for truth, guesses in worlds
    )
    message = f"{scorer.name}: other names for the labels change a figure"
    require(before.keys() == after.keys(), message)
    for key, value in before.items():
        same = isclose(after[key], value, rel_tol=1e-6, abs_tol=1e-12)
        require(same, f"{message}: {key}")


SCORER_CHECKS: tuple[ScorerCheck, ...] = (
    says_what_it_measures,
    its_headline_is_scored_and_can_be_guessed_blindly,
    a_blind_guess_is_the_same_whatever_the_truth,
    nothing_scores_better_than_the_truth,
    a_blind_value_is_what_the_guess_scores_as_a_claim,
    other_names_for_the_labels_change_no_figure,
)


def check_question(question: Question[Any]) -> None:
    """Hold a question to the contract of questions; its scorer to its own by `check_scorer`.

    Raises:
        AssertionError: saying what it does not keep to.

    """
    require_part(question)
    scorer = question.scorer
    require(not fields(question), f"{question.name}: a question has no settings")  # type: ignore[arg-type]
    require(
        scorer.name == question.name,
        f"{question.name}: its scorer is named {scorer.name!r}: both take the same name",
    )
    require(
        question.control is None or question.control in get_args(Control),
        f"{question.name}: no run is a control by the name of {question.control!r}",
    )
    require(
        tuple(question.rows((), Seed(0))) == (),
        f"{question.name}: it makes rows out of no findings",
    )


def truth_and_guesses(
    trial: ScorerTrial, before: Tensor, counts: Tensor, labels: Tensor
) -> tuple[Any, Guesses[Any]]:
    """The true answer about client/0, and the guesses at it.

    Args:
        trial: whom to ask.
        before: its label counts in round 0.
        counts: in round 1.
        labels: of the attacker's auxiliary examples.

    """
    others = {(number, client(who)): BEFORE for number in ROUNDS for who in (1, 2)}
    held = GroundTruth(
        {(0, client(0)): before, (1, client(0)): counts, **others},
        accuracy={1: 0.5},
        shifts={client(0): (1,)},
        users={client(0): "u0", client(1): "u1", client(2): "u0"},
        attributes={"age": AGES},
        members={client(0): (1, 4), client(1): (0,)},
    )
    auxiliary = Examples(torch.zeros(len(labels), 2), labels)
    people = KnownUsers(dict.fromkeys(AGES, auxiliary), attributes={"age": AGES})
    truth = trial.scorer.truth(held, client(0), ROUNDS, trial.asked)
    knowledge = Knowledge(classes=5, auxiliary=auxiliary, people=people)
    return truth, trial.scorer.guesses(truth, knowledge)


def _by_name(scorer: Scorer[Any], scores: tuple[Score, ...]) -> dict[str, Score]:
    named = {score.name: score for score in scores}
    require(len(named) == len(scores), f"{scorer.name}: two scores have one name")
    return named
