"""Contract tests for scorers and questions."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from math import isclose
from typing import Any, final, get_args

import torch
from torch import Tensor

from overheard.core.claims import Claim, Timeline
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.parties import client
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.seeds import Seed
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.record_owners import RecordOwners
from overheard.core.true_facts.shifts import Shifts
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.core.truth import GroundTruth, Partition
from overheard.findings.question import Control, Question
from overheard.questions.attribute.claim import Attribute
from overheard.questions.identity.claim import Identity
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.membership.claim import Membership
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.shift.claim import Shift
from overheard.questions.words.claim import Words
from overheard.testing.require import require, require_part

COUNTS_BEFORE = torch.tensor([2, 0, 1, 7, 0])
COUNTS = torch.tensor([6, 0, 3, 1, 0])
AUXILIARY = torch.tensor([0, 1, 1, 2, 3, 4, 4, 4])
ORDER = torch.tensor([3, 0, 4, 1, 2])
ROUNDS = (0, 1)
TOKEN_WORDS = TokenWords(7, words=("and", "bread", "crumb", "dough", "eat", "flour"))
TEXTS = torch.tensor([[1, 2], [1, 3], [1, 6], [4, 5], [1, 1], [2, 0], [1, 4], [0, 0]])
"""Eight texts of the tokens of `TOKEN_WORDS`, padded with 0."""
AGES = {"u0": "old", "u1": "young", "u2": "young"}

EXAMPLE_CLAIMS: Mapping[type[Claim], Claim] = {
    LabelShares: LabelShares(torch.full((5,), 0.2)),
    Shift: Shift(Timeline()),
    Identity: Identity(tuple(AGES), torch.zeros(3)),
    SameSender: SameSender((client(1), client(2)), torch.zeros(2)),
    Membership: Membership(torch.zeros(6)),
    Attribute: Attribute("age", ("old", "young"), torch.tensor([0.5, 0.5])),
    Words: Words(torch.zeros(len(TOKEN_WORDS)), TOKEN_WORDS.names()),
}
"""An example claim of each type; its values are not used."""

ORDER_DEPENDENT: Mapping[type[Claim], Collection[str]] = {LabelShares: ("wasserstein",)}
"""Scores that depend on the order of labels."""


@final
@dataclass(frozen=True, eq=False)
class ScorerTrial:
    """A scorer under test.

    Args:
        scorer: the scorer.
        example_claim: an example claim; its values are not used.
        order_dependent: names of scores that depend on the order of labels.
        is_across_runs: whether the headline score needs many runs, so a single claim has none.

    """

    # Any: a scorer takes the claims of its own question.
    scorer: Scorer[Any]
    example_claim: Claim
    order_dependent: Collection[str]
    is_across_runs: bool


ScorerCheck = Callable[[ScorerTrial], None]


def check_scorer(
    scorer: Scorer[Any],
    example_claim: Claim | None = None,
    *,
    order_dependent: Collection[str] = (),
    is_across_runs: bool = False,
) -> None:
    """Check that a scorer satisfies the contract of scorers.

    It is tried on the ground truth of a run of two rounds with five labels and three clients;
    client/0 is the target.

    Args:
        scorer: the scorer.
        example_claim: an example claim, whose values are not used; optional for Overheard's
            claims.
        order_dependent: names of scores that depend on the order of labels.
        is_across_runs: whether the headline score needs many runs, so a single claim has none.

    Raises:
        AssertionError: naming the violated rule.

    """
    trial = make_scorer_trial(scorer, example_claim, order_dependent, is_across_runs)
    for check in SCORER_CHECKS:
        check(trial)


def make_scorer_trial(
    scorer: Scorer[Any],
    example_claim: Claim | None = None,
    order_dependent: Collection[str] = (),
    is_across_runs: bool = False,
) -> ScorerTrial:
    """Set up the test of a scorer, with default values for omitted arguments."""
    claim = example_claim or EXAMPLE_CLAIMS.get(scorer.claim_type)
    if claim is None:
        raise AssertionError(f"{scorer.name}: pass an example {scorer.claim_type.__name__}")
    return ScorerTrial(
        scorer,
        claim,
        order_dependent or ORDER_DEPENDENT.get(scorer.claim_type, ()),
        is_across_runs or scorer.claim_type is Shift,
    )


def says_what_it_measures(trial: ScorerTrial) -> None:
    """Check that it has no settings, and that its true claim has the right type."""
    scorer = trial.scorer
    require_part(scorer)
    require(not fields(scorer), f"{scorer.name}: a scorer must not have settings")  # type: ignore[arg-type]
    truth, _ = truth_and_guesses(trial, COUNTS_BEFORE, COUNTS, AUXILIARY)
    require(
        isinstance(truth, scorer.claim_type),
        f"{scorer.name}: the true claim is no {scorer.claim_type.__name__}",
    )


def headline_has_a_score_and_a_guess(trial: ScorerTrial) -> None:
    """Check that the headline is a score with an uninformed guess to compare with."""
    scorer = trial.scorer
    truth, guesses = truth_and_guesses(trial, COUNTS_BEFORE, COUNTS, AUXILIARY)
    for claim in (truth, *guesses.uninformed.values()):
        scores = _by_name(scorer, scorer.score(claim, truth, guesses))
        if trial.is_across_runs:
            require(
                scorer.headline not in scores,
                f"{scorer.name}: a single claim has the headline score, although "
                "`is_across_runs` is set",
            )
            require(
                any(score.blinds for score in scores.values()),
                f"{scorer.name}: no score has an uninformed guess",
            )
        else:
            require(
                scorer.headline in scores and scores[scorer.headline].blinds,
                f"{scorer.name}: its headline score {scorer.headline!r} is missing, or has no "
                "uninformed guess",
            )


def guesses_do_not_depend_on_the_truth(trial: ScorerTrial) -> None:
    """Check that uninformed guesses do not depend on the ground truth."""
    scorer = trial.scorer
    one, guesses = truth_and_guesses(trial, COUNTS_BEFORE, COUNTS, AUXILIARY)
    other, others = truth_and_guesses(trial, COUNTS, COUNTS_BEFORE[ORDER], AUXILIARY)
    if scorer.claim_type in (LabelShares, Shift):
        require(
            one.numbers() != other.numbers(),
            f"{scorer.name}: different ground truths give the same true claim",
        )
    knowledge = Knowledge(classes=5, auxiliary=Examples(torch.zeros(8, 2), AUXILIARY))
    guesses_from_claim = scorer.uninformed_guesses(trial.example_claim, knowledge)
    message = f"{scorer.name}: an uninformed guess depends on the ground truth"
    require(guesses.uninformed.keys() == others.uninformed.keys(), message)
    for name, guess in guesses.uninformed.items():
        require(guess.numbers() == others.uninformed[name].numbers(), message)
        # It must not depend on the values of the passed claim either.
        if name in guesses_from_claim:
            require(
                len(guesses_from_claim[name].numbers()) == len(guess.numbers())
                and all(
                    isclose(left, right, rel_tol=1e-6, abs_tol=1e-6)
                    for left, right in zip(
                        guesses_from_claim[name].numbers(), guess.numbers(), strict=True
                    )
                ),
                f"{scorer.name}: the uninformed guess {name!r} depends on the claim",
            )


def nothing_scores_better_than_the_truth(trial: ScorerTrial) -> None:
    """Check that the true claim gets the best of all scores."""
    scorer = trial.scorer
    truth, guesses = truth_and_guesses(trial, COUNTS_BEFORE, COUNTS, AUXILIARY)
    for score in scorer.score(truth, truth, guesses):
        message = f"{scorer.name}: a guess has a better {score.name!r} than the true claim"
        require(score.gain is None or score.gain >= 0, message)
        for other in (*score.blinds.values(), *score.references.values()):
            better = score.better == "lower"
            require(other >= score.value if better else other <= score.value, message)


def guesses_are_scored_like_claims(trial: ScorerTrial) -> None:
    """Check that guesses are scored like claims."""
    scorer = trial.scorer
    truth, guesses = truth_and_guesses(trial, COUNTS_BEFORE, COUNTS, AUXILIARY)
    scores = _by_name(scorer, scorer.score(truth, truth, guesses))
    for guesses_of_kind, kind in (
        (guesses.uninformed, "blinds"),
        (guesses.informed, "references"),
    ):
        for name, guess in guesses_of_kind.items():
            as_claim = _by_name(scorer, scorer.score(guess, truth, guesses))
            for score in scores.values():
                values: Mapping[str, float] = getattr(score, kind)
                require(
                    name not in values or as_claim[score.name].value == values[name],
                    f"{scorer.name}: {name!r} has a different {score.name!r} as a claim than "
                    "as a guess",
                )


def permuting_labels_keeps_scores(trial: ScorerTrial) -> None:
    """Check that permuting the labels changes no score, except order-dependent ones."""
    scorer = trial.scorer
    # Label i of the second run is label ORDER[i] of the first.
    renamed = torch.argsort(ORDER)[AUXILIARY]
    runs = (
        truth_and_guesses(trial, COUNTS_BEFORE, COUNTS, AUXILIARY),
        truth_and_guesses(trial, COUNTS_BEFORE[ORDER], COUNTS[ORDER], renamed),
    )
    before, after = (
        {
            (name, score.name): score.value
            for name, guess in {**guesses.uninformed, **guesses.informed}.items()
            for score in scorer.score(guess, truth, guesses)
            if score.name not in trial.order_dependent
        }
        for truth, guesses in runs
    )
    message = f"{scorer.name}: permuting the labels changes a score"
    require(before.keys() == after.keys(), message)
    for key, value in before.items():
        same = isclose(after[key], value, rel_tol=1e-6, abs_tol=1e-12)
        require(same, f"{message}: {key}")


SCORER_CHECKS: tuple[ScorerCheck, ...] = (
    says_what_it_measures,
    headline_has_a_score_and_a_guess,
    guesses_do_not_depend_on_the_truth,
    nothing_scores_better_than_the_truth,
    guesses_are_scored_like_claims,
    permuting_labels_keeps_scores,
)


def check_question(question: Question[Any]) -> None:
    """Check that a question satisfies the contract of questions; see also `check_scorer`.

    Raises:
        AssertionError: naming the violated rule.

    """
    require_part(question)
    scorer = question.scorer
    require(not fields(question), f"{question.name}: a question must not have settings")  # type: ignore[arg-type]
    require(
        scorer.name == question.name,
        f"{question.name}: its scorer is named {scorer.name!r}: give both the same name",
    )
    require(
        question.control is None or question.control in get_args(Control),
        f"{question.name}: unknown control {question.control!r}: choose one of "
        f"{get_args(Control)}",
    )
    require(
        tuple(question.summary_rows((), Seed(0))) == (),
        f"{question.name}: `summary_rows` must return nothing for no findings",
    )


def truth_and_guesses(
    trial: ScorerTrial, before: Tensor, counts: Tensor, labels: Tensor
) -> tuple[Any, Guesses[Any]]:
    """Return the true claim about client/0, and the guesses at it.

    Args:
        trial: the scorer under test.
        before: label counts of client/0 in round 0.
        counts: its label counts in round 1.
        labels: labels of the attacker's auxiliary examples.

    """
    others = {
        (number, client(client_number)): COUNTS_BEFORE
        for number in ROUNDS
        for client_number in (1, 2)
    }
    ground_truth = GroundTruth(
        {(0, client(0)): before, (1, client(0)): counts, **others},
        accuracy={1: 0.5},
        facts=Facts(
            (
                UsersOfClients({client(0): "u0", client(1): "u1", client(2): "u0"}),
                Attributes({"age": AGES}),
                RecordOwners({client(0): (1, 4), client(1): (0,)}),
                Shifts({client(0): (1,)}),
            )
        ),
        partition=Partition(
            Examples(TEXTS, labels.flip(0)),
            {
                (number, client(client_number)): torch.tensor([client_number, 3 + number])
                for number in ROUNDS
                for client_number in (0, 1, 2)
            },
            TOKEN_WORDS,
        ),
    )
    auxiliary = Examples(TEXTS, labels)
    known_users = KnownUsers(dict.fromkeys(AGES, auxiliary), attributes={"age": AGES})
    truth = trial.scorer.true_claim(ground_truth, client(0), ROUNDS, trial.example_claim)
    knowledge = Knowledge(
        classes=5, auxiliary=auxiliary, facts=Facts((known_users, TOKEN_WORDS))
    )
    return truth, trial.scorer.guesses(truth, knowledge)


def _by_name(scorer: Scorer[Any], scores: tuple[Score, ...]) -> dict[str, Score]:
    named = {score.name: score for score in scores}
    require(len(named) == len(scores), f"{scorer.name}: two scores have the same name")
    return named
