"""Contract tests for scorers and questions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from math import isclose
from typing import Any, get_args

import torch
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.facts import Fact, Facts
from overheard.core.knowledge import Knowledge, KnownFact
from overheard.core.parties import client
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.truth import GroundTruth, TrueFact
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition
from overheard.findings.question import Control, Question
from overheard.testing.require import require, require_part
from overheard.testing.trial import QuestionChecks, checks_of

COUNTS_BEFORE = torch.tensor([2, 0, 1, 7, 0])
COUNTS = torch.tensor([6, 0, 3, 1, 0])
AUXILIARY = torch.tensor([0, 1, 1, 2, 3, 4, 4, 4])
ORDER = torch.tensor([3, 0, 4, 1, 2])
ROUNDS = (0, 1)

ScorerCheck = Callable[[QuestionChecks], None]


def check_scorer(scorer: Scorer[Any], checks: QuestionChecks | None = None) -> None:
    """Check that a scorer satisfies the contract of scorers.

    It is tried on the ground truth of a run of two rounds with five labels and three clients;
    client/0 is the target.

    Args:
        scorer: the scorer.
        checks: the checks of its question; by default those of the installed question.

    Raises:
        AssertionError: naming the violated rule.

    """
    checks = checks or checks_of(scorer.claim_type)
    require(
        checks.scorer == scorer, f"{scorer.name}: the checks are those of {checks.scorer.name}"
    )
    for check in SCORER_CHECKS:
        check(checks)


def says_what_it_measures(checks: QuestionChecks) -> None:
    """Check that it has no settings, and that its true claim has the right type."""
    scorer = checks.scorer
    require_part(scorer)
    require(not fields(scorer), f"{scorer.name}: a scorer must not have settings")  # type: ignore[arg-type]
    truth, _ = truth_and_guesses(checks, COUNTS_BEFORE, COUNTS, AUXILIARY)
    require(
        isinstance(truth, scorer.claim_type),
        f"{scorer.name}: the true claim is no {scorer.claim_type.__name__}",
    )


def headline_has_a_score_and_a_guess(checks: QuestionChecks) -> None:
    """Check that the headline is a score with an uninformed guess to compare with."""
    scorer = checks.scorer
    truth, guesses = truth_and_guesses(checks, COUNTS_BEFORE, COUNTS, AUXILIARY)
    for claim in (truth, *guesses.uninformed.values()):
        scores = _by_name(scorer, scorer.score(claim, truth, guesses))
        if checks.is_across_runs:
            require(
                scorer.headline not in scores,
                f"{scorer.name}: a single claim has the headline score, although "
                "`is_across_runs` is set",
            )
            require(
                any(score.uninformed for score in scores.values()),
                f"{scorer.name}: no score has an uninformed guess",
            )
        else:
            require(
                scorer.headline in scores and scores[scorer.headline].uninformed,
                f"{scorer.name}: its headline score {scorer.headline!r} is missing, or has no "
                "uninformed guess",
            )


def guesses_do_not_depend_on_the_truth(checks: QuestionChecks) -> None:
    """Check that uninformed guesses do not depend on the ground truth."""
    scorer = checks.scorer
    one, guesses = truth_and_guesses(checks, COUNTS_BEFORE, COUNTS, AUXILIARY)
    other, others = truth_and_guesses(checks, COUNTS, COUNTS_BEFORE[ORDER], AUXILIARY)
    if checks.is_about_labels:
        require(
            one.numbers() != other.numbers(),
            f"{scorer.name}: different ground truths give the same true claim",
        )
    guesses_from_claim = scorer.uninformed_guesses(checks.example, _know(AUXILIARY))
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


def nothing_scores_better_than_the_truth(checks: QuestionChecks) -> None:
    """Check that the true claim gets the best of all scores."""
    scorer = checks.scorer
    truth, guesses = truth_and_guesses(checks, COUNTS_BEFORE, COUNTS, AUXILIARY)
    for score in scorer.score(truth, truth, guesses):
        message = f"{scorer.name}: a guess has a better {score.name!r} than the true claim"
        require(score.gain is None or score.gain >= 0, message)
        for other in (*score.uninformed.values(), *score.references.values()):
            better = score.better == "lower"
            require(other >= score.value if better else other <= score.value, message)


def guesses_are_scored_like_claims(checks: QuestionChecks) -> None:
    """Check that guesses are scored like claims."""
    scorer = checks.scorer
    truth, guesses = truth_and_guesses(checks, COUNTS_BEFORE, COUNTS, AUXILIARY)
    scores = _by_name(scorer, scorer.score(truth, truth, guesses))
    for guesses_of_kind, kind in (
        (guesses.uninformed, "uninformed"),
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


def permuting_labels_keeps_scores(checks: QuestionChecks) -> None:
    """Check that permuting the labels changes no score, except order-dependent ones."""
    scorer = checks.scorer
    # Label i of the second run is label ORDER[i] of the first.
    renamed = torch.argsort(ORDER)[AUXILIARY]
    runs = (
        truth_and_guesses(checks, COUNTS_BEFORE, COUNTS, AUXILIARY),
        truth_and_guesses(checks, COUNTS_BEFORE[ORDER], COUNTS[ORDER], renamed),
    )
    before, after = (
        {
            (name, score.name): score.value
            for name, guess in {**guesses.uninformed, **guesses.informed}.items()
            for score in scorer.score(guess, truth, guesses)
            if score.name not in checks.order_dependent
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
    _facts_have_makers(question)
    require(
        tuple(question.summary_rows((), Seed(0))) == (),
        f"{question.name}: `summary_rows` must return nothing for no findings",
    )


# Any: each question has claims of its own.
def _facts_have_makers(question: Question[Any]) -> None:
    """Check that Overheard or the question makes each fact that it reads or gives."""
    dataset, partition = _small_data()
    true = question.make_true_facts(dataset, partition)
    known = question.make_known_facts(dataset, partition, Seed(0))
    _require_makers(question, "reads", TrueFact, "make_true_facts", true)
    _require_makers(question, "gives", KnownFact, "make_known_facts", known)


# Any: as above.
def _require_makers(
    question: Question[Any], named: str, base: type[Fact], maker: str, made: Sequence[Fact]
) -> None:
    kinds: tuple[type[Fact], ...] = getattr(question, named)
    is_own_maker = getattr(type(question), maker) is not getattr(Question, maker)
    for kind in kinds:
        require(
            issubclass(kind, base),
            f"{question.name}: `{named}` has {kind.__name__}, which is no {base.__name__}",
        )
        require(
            is_own_maker or kind.__module__.startswith("overheard.core."),
            f"{question.name}: nothing makes the {kind.__name__} in `{named}`: return one from "
            f"`{maker}`",
        )
    others = [type(fact).__name__ for fact in made if type(fact) not in kinds]
    require(
        not others,
        f"{question.name}: `{maker}` returns a {' and a '.join(others)}, which `{named}` does "
        "not have: add it there",
    )


def _small_data() -> tuple[Dataset, DataPartition]:
    """Return six examples, and their partition among two clients in one round."""
    examples = Examples(torch.arange(12.0).view(6, 2), torch.arange(6) % 2)
    dataset = Dataset(examples, examples, Task((2,), ("a", "b")))
    rows = ((torch.arange(2), torch.arange(2, 6)),)
    return dataset, DataPartition(examples, rows, examples, examples, {})


def truth_and_guesses(
    checks: QuestionChecks, before: Tensor, counts: Tensor, labels: Tensor
) -> tuple[Any, Guesses[Any]]:
    """Return the true claim about client/0, and the guesses at it.

    Args:
        checks: those of the scorer under test.
        before: label counts of client/0 in round 0.
        counts: its label counts in round 1.
        labels: labels of the attacker's auxiliary examples.

    """
    others = {
        (number, client(client_number)): COUNTS_BEFORE
        for number in ROUNDS
        for client_number in (1, 2)
    }
    label_counts = LabelCounts({(0, client(0)): before, (1, client(0)): counts, **others})
    ground_truth = checks.add_truth(GroundTruth(Facts(label_counts), {1: 0.5}))
    knowledge = checks.add_knowledge(_know(labels))
    truth = checks.scorer.true_claim(ground_truth, client(0), ROUNDS, checks.example)
    return truth, checks.scorer.guesses(truth, knowledge)


def _know(labels: Tensor) -> Knowledge:
    return Knowledge(classes=5, auxiliary=Examples(torch.zeros(len(labels), 2), labels))


def _by_name(scorer: Scorer[Any], scores: tuple[Score, ...]) -> dict[str, Score]:
    named = {score.name: score for score in scores}
    require(len(named) == len(scores), f"{scorer.name}: two scores have the same name")
    return named
