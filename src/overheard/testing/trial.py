"""An attack and the runs that it is tried on, each of which it hears once."""

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
from overheard.plans.kinds import questions
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
"""Claims about the people behind pseudonyms."""

Claims = Mapping[Party, Any]
"""Any: each attack claims what answers its own question."""


@final
@dataclass(frozen=True, eq=False)
class Trial:
    """An attack and the runs that it is tried on.

    Args:
        attack: with its settings.
        scorer: holds its claims against the truth; None = nobody knows one.
        leaky: runs that leak the answer to its question; the first is where the contract is
            tried.
        silent: runs that do not.
        is_gain_known: whether the runs were chosen for the question, so that the attack must
            be better than blind guesses where it leaks, and not where it does not.

    """

    attack: Attack[Any]
    scorer: Scorer[Any] | None
    leaky: tuple[World, ...]
    silent: tuple[World, ...]
    is_gain_known: bool

    @property
    def world(self) -> World:
        """Where the contract is tried."""
        return self.leaky[0]


def trial_of(
    attack: Attack[Any],
    scorer: Scorer[Any] | None = None,
    leaky: World | None = None,
    silent: World | None = None,
) -> Trial:
    """Choose runs for an attack by what it claims, unless they are given.

    Args:
        attack: with its settings.
        scorer: that of the question which takes its claims, if left out.
        leaky: a run that leaks the answer.
        silent: a run that does not.

    """
    known = {question.scorer.claim: question.scorer for question in questions().values()}
    judge = scorer or known.get(attack.answers)
    if leaky is not None:
        held = () if silent is None else (silent,)
        return Trial(attack, judge, (leaky,), held, is_gain_known=True)
    if attack.answers is Shift:
        return Trial(attack, judge, shifting(), still(), is_gain_known=False)
    if attack.answers in PERSONAL:
        return Trial(attack, judge, (different(),), (alike(),), is_gain_known=True)
    if attack.answers is Membership:
        return Trial(attack, judge, (by_heart(),), (never_seen(),), is_gain_known=True)
    ours = judge is not None and judge.name == "label_shares"
    return Trial(attack, judge, (skewed(),), (tight(),) if ours else (), is_gain_known=ours)


@cache
def skewed() -> planted.Overheard:
    """Each client holds one class above all, and sends what it learned from that."""
    return planted.federate(planted.SKEWED)


@cache
def tight() -> planted.Overheard:
    """Each client says what an even client would: its update has nothing of its own data."""
    even = planted.federate(planted.EVEN)
    auxiliary = even.knowledge.auxiliary
    assert auxiliary is not None
    return planted.hold(even.start, even.deltas, planted.SKEWED, auxiliary, even.sets)


@cache
def shifting() -> tuple[planted_shift.ShiftingRun, ...]:
    """Every client goes over to one class above all."""
    return tuple(
        planted_shift.federate_on(planted_shift.SKEWED, Seed(number)) for number in range(2)
    )


@cache
def still() -> tuple[planted_shift.ShiftingRun, ...]:
    """Every client keeps what it has."""
    return tuple(planted_shift.federate_on(None, Seed(number)) for number in range(2))


@cache
def different() -> planted_identity.Peopled:
    """Everyone has favourite labels, a look and a size, in prior and private examples alike."""
    people = [planted_identity.person(number) for number in planted_identity.EVERYONE]
    return planted_identity.federate_people(people, Seed(0))


@cache
def alike() -> planted_identity.Peopled:
    """Everyone is like everyone else, and holds other examples in every round."""
    people = [planted_identity.anybody(number) for number in planted_identity.EVERYONE]
    return planted_identity.federate_people(people, Seed(0), fresh=True)


@cache
def by_heart() -> planted_membership.Remembered:
    """Clients learned the records in question by heart."""
    return planted_membership.federate_records(by_heart=True)


@cache
def never_seen() -> planted_membership.Remembered:
    """No client ever saw any of the records in question."""
    return planted_membership.federate_records(by_heart=False)


@cache
def claims_of(attack: Attack[Any], world: World) -> Claims:
    """What an attack claims about a run: asked once, with an eye on what it does to the view.

    Raises:
        AssertionError: if it changes the view that it is given.

    """
    view = world.transcript.seen_by(SERVER)
    before = _tensors(view, copied=True)
    claims = claim_anew(attack, view, world.targets, world.knowledge)
    after = _tensors(view, copied=False)
    require(
        len(before) == len(after) and all(map(torch.equal, before, after)),
        f"{attack.name} changes the tensors of the view that it is given: copy them first",
    )
    return claims


def claim_anew(
    attack: Attack[Any], view: View, targets: Sequence[Party], knowledge: Knowledge
) -> Claims:
    """What an attack claims under one and the same seed."""
    return dict(attack.infer(view, targets, knowledge, Seed(0)))


def told(claim: Claim) -> tuple[float, ...]:
    """All that a claim says, as plain numbers."""
    timeline = claim.timeline()
    if timeline is None:
        return claim.numbers()
    since = -1.0 if timeline.since is None else float(timeline.since)
    return (*claim.numbers(), *timeline.statistic, since)


def mean_gain(trial: Trial, world: World) -> float:
    """Of the headline figure over the best blind guess, averaged over targets."""
    scorer = trial.scorer
    if scorer is None:
        raise AssertionError(f"{trial.attack.name}: give the scorer of its question")
    view, gains = world.transcript.seen_by(SERVER), list[float]()
    for target, claim in claims_of(trial.attack, world).items():
        rounds = sorted(view.heard(target))
        truth = scorer.truth(world.truth, target, rounds, claim)
        scores = scorer.score(claim, truth, scorer.guesses(truth, world.knowledge))
        gains += [
            score.gain
            for score in scores
            if score.name == scorer.headline and score.gain is not None
        ]
    require(gains, f"{trial.attack.name}: no claim has the headline score {scorer.headline!r}")
    return sum(gains) / len(gains)


def _tensors(view: View, *, copied: bool) -> list[Tensor]:
    held = list[Tensor]()
    for message in view.messages:
        match message.body:
            case Broadcast(weights=weights):
                held += weights.values()
            case Update(delta=delta) | Aggregate(delta=delta):
                held += delta.values()
            case DistilledSet(inputs=inputs, labels=labels, rates=rates):
                held += [inputs, labels, rates]
    return [tensor.clone() for tensor in held] if copied else held
