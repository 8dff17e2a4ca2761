"""An attack under test and its planted runs; claims about each run are cached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, final

import torch
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.claims import Claim
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Aggregate, Broadcast, DistilledSet, Update
from overheard.core.parties import SERVER, Party
from overheard.core.scorer import Scorer
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.plans.registries import questions
from overheard.questions.attribute.claim import Attribute
from overheard.questions.identity.claim import Identity
from overheard.questions.membership.claim import Membership
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.shift.claim import Shift
from overheard.questions.words.claim import Words
from overheard.testing.planted_runs import (
    planted_identity,
    planted_labels,
    planted_membership,
    planted_shift,
    planted_words,
)
from overheard.testing.planted_runs.planted_run import PlantedRun
from overheard.testing.require import require

USER_CLAIMS = (Identity, SameSender, Attribute)
"""Claims about the users behind pseudonyms."""

Claims = Mapping[Party, Any]
"""Any: each attack has its own type of claims."""


@final
@dataclass(frozen=True, eq=False)
class AttackTrial:
    """An attack under test, and its planted runs.

    Args:
        attack: the attack, with its settings.
        scorer: scorer of its claims; None = not known.
        leaky_runs: runs that leak the answer to its question; general checks use the first.
        leak_free_runs: runs that do not leak it.
        is_gain_known: whether the runs fit the question, so that the attack must beat
            uninformed guesses on the leaky runs, and must not on the others.

    """

    attack: Attack[Any]
    scorer: Scorer[Any] | None
    leaky_runs: tuple[PlantedRun, ...]
    leak_free_runs: tuple[PlantedRun, ...]
    is_gain_known: bool

    @property
    def first_run(self) -> PlantedRun:
        """The run for the general checks."""
        return self.leaky_runs[0]


def make_trial(
    attack: Attack[Any],
    scorer: Scorer[Any] | None = None,
    leaky: PlantedRun | None = None,
    leak_free: PlantedRun | None = None,
) -> AttackTrial:
    """Choose runs for an attack by its claims, unless they are passed.

    Args:
        attack: the attack, with its settings.
        scorer: scorer of its claims; by default that of the installed question.
        leaky: a run that leaks the answer.
        leak_free: a run that does not leak it.

    """
    scorers = {question.scorer.claim_type: question.scorer for question in questions().values()}
    known_scorer = scorer or scorers.get(attack.claim_type)
    if leaky is not None:
        leak_free_runs = () if leak_free is None else (leak_free,)
        return AttackTrial(attack, known_scorer, (leaky,), leak_free_runs, is_gain_known=True)
    if attack.claim_type is Shift:
        return AttackTrial(
            attack, known_scorer, shifting_runs(), constant_runs(), is_gain_known=False
        )
    if attack.claim_type in USER_CLAIMS:
        return AttackTrial(
            attack,
            known_scorer,
            (distinct_users_run(),),
            (identical_users_run(),),
            is_gain_known=True,
        )
    if attack.claim_type is Membership:
        return AttackTrial(
            attack, known_scorer, (memorised_run(),), (unseen_run(),), is_gain_known=True
        )
    if attack.claim_type is Words:
        return AttackTrial(
            attack, known_scorer, (own_words_run(),), (others_words_run(),), is_gain_known=True
        )
    is_about_shares = known_scorer is not None and known_scorer.name == "label_shares"
    return AttackTrial(
        attack,
        known_scorer,
        (skewed_run(),),
        (leak_free_run(),) if is_about_shares else (),
        is_gain_known=is_about_shares,
    )


@cache
def skewed_run() -> planted_labels.LabelSharesRun:
    """Return a run in which each client has mostly examples of one class."""
    return planted_labels.simulate_one_round(planted_labels.SKEWED)


@cache
def leak_free_run() -> planted_labels.LabelSharesRun:
    """Return the skewed run with updates of even clients, which do not depend on its data."""
    even = planted_labels.simulate_one_round(planted_labels.EVEN)
    auxiliary = even.knowledge.auxiliary
    assert auxiliary is not None
    return planted_labels.assemble_run(
        even.start, even.deltas, planted_labels.SKEWED, auxiliary, even.sets
    )


@cache
def shifting_runs() -> tuple[planted_shift.ShiftingRun, ...]:
    """Return runs in which every client shifts to mostly one class."""
    return tuple(
        planted_shift.simulate_shift(planted_shift.SKEWED, Seed(number)) for number in range(2)
    )


@cache
def constant_runs() -> tuple[planted_shift.ShiftingRun, ...]:
    """Return runs in which every client keeps its examples."""
    return tuple(planted_shift.simulate_shift(None, Seed(number)) for number in range(2))


@cache
def distinct_users_run() -> planted_identity.IdentityRun:
    """Return a run whose users differ in label frequencies, inputs and size."""
    people = [planted_identity.make_user(number) for number in planted_identity.ALL_USERS]
    return planted_identity.simulate_users(people, Seed(0))


@cache
def identical_users_run() -> planted_identity.IdentityRun:
    """Return a run with identical users, who have new examples in every round."""
    people = [
        planted_identity.make_identical_user(number) for number in planted_identity.ALL_USERS
    ]
    return planted_identity.simulate_users(people, Seed(0), redraw_examples=True)


@cache
def memorised_run() -> planted_membership.MembershipRun:
    """Return a run in which clients memorised the candidate records."""
    return planted_membership.simulate_membership(memorised=True)


@cache
def unseen_run() -> planted_membership.MembershipRun:
    """Return a run in which no client saw any of the candidate records."""
    return planted_membership.simulate_membership(memorised=False)


@cache
def own_words_run() -> planted_words.WordsRun:
    """Return a run in which clients train on texts with words of their own."""
    return planted_words.simulate_words(is_leaking=True)


@cache
def others_words_run() -> planted_words.WordsRun:
    """Return a run in which no client trains on its own texts."""
    return planted_words.simulate_words(is_leaking=False)


@cache
def cached_claims(attack: Attack[Any], run: PlantedRun) -> Claims:
    """Return an attack's claims about a run, cached; also check that the view is not changed.

    Raises:
        AssertionError: if the attack changes the view.

    """
    view = run.transcript.seen_by(SERVER)
    before = _tensors(view, copied=True)
    claims = infer_claims(attack, view, run.targets, run.knowledge)
    after = _tensors(view, copied=False)
    require(
        len(before) == len(after) and all(map(torch.equal, before, after)),
        f"{attack.name} changes the tensors of the view in place: copy them first",
    )
    return claims


def infer_claims(
    attack: Attack[Any], view: View, targets: Sequence[Party], knowledge: Knowledge
) -> Claims:
    """Infer an attack's claims with a fixed seed.

    Raises:
        AssertionError: if what it returns are no claims of its class.

    """
    claims = dict(attack.infer(view, targets, knowledge, Seed(0)))
    for target, claim in claims.items():
        require(
            isinstance(claim, attack.claim_type),
            f"{attack.name} returns a {type(claim).__name__} about {target}, and not a "
            f"{attack.claim_type.__name__}",
        )
    return claims


def claim_numbers(claim: Claim) -> tuple[float, ...]:
    """Return all numbers of a claim, including its timeline."""
    timeline = claim.timeline()
    if timeline is None:
        return claim.numbers()
    since = -1.0 if timeline.since is None else float(timeline.since)
    return (*claim.numbers(), *timeline.statistic, since)


def mean_gain(trial: AttackTrial, run: PlantedRun) -> float:
    """Return the mean gain of the headline score over the best uninformed guess."""
    scorer = trial.scorer
    if scorer is None:
        raise AssertionError(f"{trial.attack.name}: pass the scorer of its question")
    view, gains = run.transcript.seen_by(SERVER), list[float]()
    for target, claim in cached_claims(trial.attack, run).items():
        rounds = sorted(view.rounds_with_updates(target))
        truth = scorer.true_claim(run.truth, target, rounds, claim)
        scores = scorer.score(claim, truth, scorer.guesses(truth, run.knowledge))
        gains += [
            score.gain
            for score in scores
            if score.name == scorer.headline and score.gain is not None
        ]
    require(gains, f"{trial.attack.name}: no claim has the headline score {scorer.headline!r}")
    return sum(gains) / len(gains)


def _tensors(view: View, *, copied: bool) -> list[Tensor]:
    tensors = list[Tensor]()
    for message in view.messages:
        match message.body:
            case Broadcast(weights=weights):
                tensors += weights.values()
            case Update(delta=delta) | Aggregate(delta=delta):
                tensors += delta.values()
            case DistilledSet(inputs=inputs, labels=labels, rates=rates):
                tensors += [inputs, labels, rates]
    return [tensor.clone() for tensor in tensors] if copied else tensors
