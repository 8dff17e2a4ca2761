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
from overheard.testing.require import require
from overheard.testing.worlds import (
    planted,
    planted_identity,
    planted_membership,
    planted_shift,
)
from overheard.testing.worlds.world import World

PERSONAL = (Identity, SameSender, Attribute)
"""Claims about the users behind pseudonyms."""

Claims = Mapping[Party, Any]
"""Any: each attack has its own type of claims."""


@final
@dataclass(frozen=True, eq=False)
class Trial:
    """An attack under test, and its planted runs.

    Args:
        attack: the attack, with its settings.
        scorer: scorer of its claims; None = not known.
        leaky: runs that leak the answer to its question; general checks use the first.
        silent: runs that do not leak it.
        is_gain_known: whether the runs fit the question, so that the attack must beat
            uninformed guesses on the leaky runs, and must not on the others.

    """

    attack: Attack[Any]
    scorer: Scorer[Any] | None
    leaky: tuple[World, ...]
    silent: tuple[World, ...]
    is_gain_known: bool

    @property
    def world(self) -> World:
        """The run for the general checks."""
        return self.leaky[0]


def trial_of(
    attack: Attack[Any],
    scorer: Scorer[Any] | None = None,
    leaky: World | None = None,
    silent: World | None = None,
) -> Trial:
    """Choose runs for an attack by its claims, unless they are passed.

    Args:
        attack: the attack, with its settings.
        scorer: scorer of its claims; by default that of the installed question.
        leaky: a run that leaks the answer.
        silent: a run that does not leak it.

    """
    scorers = {question.scorer.claim_type: question.scorer for question in questions().values()}
    known_scorer = scorer or scorers.get(attack.claim_type)
    if leaky is not None:
        leak_free_runs = () if silent is None else (silent,)
        return Trial(attack, known_scorer, (leaky,), leak_free_runs, is_gain_known=True)
    if attack.claim_type is Shift:
        return Trial(attack, known_scorer, shifting(), still(), is_gain_known=False)
    if attack.claim_type in PERSONAL:
        return Trial(attack, known_scorer, (different(),), (alike(),), is_gain_known=True)
    if attack.claim_type is Membership:
        return Trial(attack, known_scorer, (by_heart(),), (never_seen(),), is_gain_known=True)
    is_about_shares = known_scorer is not None and known_scorer.name == "label_shares"
    return Trial(
        attack,
        known_scorer,
        (skewed(),),
        (tight(),) if is_about_shares else (),
        is_gain_known=is_about_shares,
    )


@cache
def skewed() -> planted.Overheard:
    """Return a run in which each client has mostly examples of one class."""
    return planted.federate(planted.SKEWED)


@cache
def tight() -> planted.Overheard:
    """Return the skewed run with updates of even clients, which do not depend on its data."""
    even = planted.federate(planted.EVEN)
    auxiliary = even.knowledge.auxiliary
    assert auxiliary is not None
    return planted.hold(even.start, even.deltas, planted.SKEWED, auxiliary, even.sets)


@cache
def shifting() -> tuple[planted_shift.ShiftingRun, ...]:
    """Return runs in which every client shifts to mostly one class."""
    return tuple(
        planted_shift.federate_on(planted_shift.SKEWED, Seed(number)) for number in range(2)
    )


@cache
def still() -> tuple[planted_shift.ShiftingRun, ...]:
    """Return runs in which every client keeps its examples."""
    return tuple(planted_shift.federate_on(None, Seed(number)) for number in range(2))


@cache
def different() -> planted_identity.Peopled:
    """Return a run whose users differ in label frequencies, inputs and size."""
    people = [planted_identity.person(number) for number in planted_identity.EVERYONE]
    return planted_identity.federate_people(people, Seed(0))


@cache
def alike() -> planted_identity.Peopled:
    """Return a run with identical users, who have new examples in every round."""
    people = [planted_identity.anybody(number) for number in planted_identity.EVERYONE]
    return planted_identity.federate_people(people, Seed(0), fresh=True)


@cache
def by_heart() -> planted_membership.Remembered:
    """Return a run in which clients memorised the candidate records."""
    return planted_membership.federate_records(by_heart=True)


@cache
def never_seen() -> planted_membership.Remembered:
    """Return a run in which no client saw any of the candidate records."""
    return planted_membership.federate_records(by_heart=False)


@cache
def claims_of(attack: Attack[Any], world: World) -> Claims:
    """Return an attack's claims about a run, cached; also check that the view is not changed.

    Raises:
        AssertionError: if the attack changes the view.

    """
    view = world.transcript.seen_by(SERVER)
    before = _tensors(view, copied=True)
    claims = claim_anew(attack, view, world.targets, world.knowledge)
    after = _tensors(view, copied=False)
    require(
        len(before) == len(after) and all(map(torch.equal, before, after)),
        f"{attack.name} changes the tensors of the view in place: copy them first",
    )
    return claims


def claim_anew(
    attack: Attack[Any], view: View, targets: Sequence[Party], knowledge: Knowledge
) -> Claims:
    """Infer an attack's claims with a fixed seed."""
    return dict(attack.infer(view, targets, knowledge, Seed(0)))


def told(claim: Claim) -> tuple[float, ...]:
    """Return all numbers of a claim, including its timeline."""
    timeline = claim.timeline()
    if timeline is None:
        return claim.numbers()
    since = -1.0 if timeline.since is None else float(timeline.since)
    return (*claim.numbers(), *timeline.statistic, since)


def mean_gain(trial: Trial, world: World) -> float:
    """Return the mean gain of the headline score over the best uninformed guess."""
    scorer = trial.scorer
    if scorer is None:
        raise AssertionError(f"{trial.attack.name}: pass the scorer of its question")
    view, gains = world.transcript.seen_by(SERVER), list[float]()
    for target, claim in claims_of(trial.attack, world).items():
        rounds = sorted(view.rounds_with_updates(target))
        truth = scorer.true_claim(world.truth, target, rounds, claim)
        scores = scorer.score(claim, truth, scorer.guesses(truth, world.knowledge))
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
