"""One round: the server broadcasts, clients train and answer, the server takes the mean."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import final

import torch
from torch import Tensor

from overheard.archive.recorder import OpenRound
from overheard.core.defense import Training
from overheard.core.errors import PlanError
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    Message,
    Missing,
    Update,
    Weights,
)
from overheard.core.parties import COHORT, SERVER, Party
from overheard.core.view import mean_update
from overheard.federation.cohort import Cohort, gather, moment
from overheard.federation.federation import Federation
from overheard.learning.cohort import Group, Trained
from overheard.learning.train import train_groups

TO_SERVER = frozenset({SERVER})
TO_NOBODY = frozenset[Party]()

TRAINING_BYTES = 2 * 2**30
"""Memory for the clients that train at once. A fixed figure: how many train at once moves the
last bits of what they learn, and a run that goes on after a kill may find less memory free."""

COPIES_OF_WEIGHTS = 6
"""Of each client in training: weights, gradients, two moments, scratch and the change."""

LARGEST_CHUNK = 32
"""Beyond it, more clients at once train no faster (see `learning.memory`)."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """One federation's part in a round that several hold side by side.

    Args:
        federation: which.
        weights: its global model at the start of the round.
        said: where it is written down; None where that was done before: its clients then train
            along, so that those whom they share a stack with end with the same bits.

    """

    federation: Federation
    weights: Weights
    said: OpenRound | None


def hold(sessions: Sequence[Session], number: int) -> None:
    """Let everyone say what there is to say in this round.

    In order, in each federation: the broadcast, a `Missing` from each client that was asked and
    failed, the updates in the order of the clients and, where no update can be read, their
    aggregate. Each update is on the disk before the next chunk of clients is trained.

    Args:
        sessions: of federations that `check_together` passes, one stretch of `stacks`.
        number: of the round.

    """
    cohorts = [_begin(session, number) for session in sessions]
    first = sessions[0].federation
    training = Training(first.build_model, first.recipe)
    for defense in first.defenses:
        training = defense.on_training(training)
    trained = train_groups(
        training.build_model,
        [
            Group(
                one.weights, cohort.pool, cohort.members, one.federation.seed.child("training")
            )
            for one, cohort in zip(sessions, cohorts, strict=True)
        ],
        training.recipe,
        round=number,
        engine=first.engine,
        chunk=clients_at_once(sessions[0].weights),
        workers=first.workers,
        device=first.device,
    )
    for session, cohort in zip(sessions, cohorts, strict=True):
        learned = islice(trained, len(cohort.members))
        if session.said is None:
            deque(learned, maxlen=0)
        else:
            _answer(session.federation, session.said, number, learned)


def clients_at_once(weights: Weights) -> int:
    """How many clients of such a model are trained together."""
    size = sum(tensor.numel() * tensor.element_size() for tensor in weights.values())
    return min(LARGEST_CHUNK, max(1, TRAINING_BYTES // (COPIES_OF_WEIGHTS * size)))


def _begin(session: Session, number: int) -> Cohort:
    """Say what stands before any training, and give those who train."""
    cohort = gather(session.federation, number)
    if session.said is not None:
        session.said.send(broadcast(session.federation, number, session.weights))
        for party, reason in cohort.missing.items():
            session.said.send(Message(number, party, TO_SERVER, Missing(reason)))
    return cohort


def _answer(
    federation: Federation, said: OpenRound, number: int, learned: Iterator[Trained]
) -> None:
    """Send each update as it is learned and, where nobody reads one, their mean."""
    answers = []
    for one in learned:
        party = Party(one.member.name)
        update = Update(one.delta, len(one.member.rows), {"loss": one.loss})
        _refuse_divergence(update, number, party)
        for defense in federation.defenses_of(party):
            update = defense.on_update(update, moment(federation, defense, number, party))
        readers = TO_NOBODY if federation.is_masked else TO_SERVER
        answers.append(said.send(Message(number, party, readers, update)))
    if federation.is_masked and answers:
        summed = _mean(federation, number, answers)
        said.send(Message(number, COHORT, TO_SERVER, summed))


def broadcast(federation: Federation, number: int, weights: Weights) -> Message:
    """The global model, as everyone hears it."""
    return Message(number, SERVER, frozenset(federation.clients), Broadcast(weights))


def next_weights(
    federation: Federation, number: int, messages: Sequence[Message]
) -> dict[str, Tensor]:
    """The global model after this round, from what was said in it and nothing else.

    McMahan et al. 2017, Algorithm 1: the old model plus the size-weighted mean of the
    updates. Where nobody answered, the old model stays.
    """
    old = _said(messages)
    aggregate = _aggregate(federation, number, messages)
    if aggregate is None:
        return old
    for defense in federation.defenses:
        if defense.enforced_at == "server":
            aggregate = defense.on_aggregate(
                aggregate, moment(federation, defense, number, SERVER)
            )
    return {
        name: (tensor + aggregate.delta[name]).to(tensor.dtype) for name, tensor in old.items()
    }


def _said(messages: Sequence[Message]) -> dict[str, Tensor]:
    for message in messages:
        if isinstance(message.body, Broadcast):
            return dict(message.body.weights)
    raise AssertionError("every round begins with a broadcast")


def _aggregate(
    federation: Federation, number: int, messages: Sequence[Message]
) -> Aggregate | None:
    """What reached the server: the aggregate that it was sent, or the mean of the updates."""
    for message in messages:
        if isinstance(message.body, Aggregate):
            return message.body
    answers = [message for message in messages if isinstance(message.body, Update)]
    return _mean(federation, number, answers) if answers else None


def _mean(federation: Federation, number: int, answers: Sequence[Message]) -> Aggregate:
    """The mean, after the defenses that act before the server has it."""
    updates = [answer.body for answer in answers if isinstance(answer.body, Update)]
    mean = mean_update(updates)
    cohort = frozenset(answer.sender for answer in answers)
    aggregate = Aggregate(mean.delta, cohort, mean.examples)
    for defense in federation.defenses:
        if defense.enforced_at != "server":
            aggregate = defense.on_aggregate(
                aggregate, moment(federation, defense, number, SERVER)
            )
    return aggregate


def _refuse_divergence(update: Update, number: int, party: Party) -> None:
    """Tell a training that ran away from its cause, while the cause is known."""
    finite = all(bool(torch.isfinite(tensor).all()) for tensor in update.delta.values())
    if not (finite and _is_number(update.metrics)):
        raise PlanError(
            f"the training of {party} ran away in round {number} (its weights or its loss are "
            "NaN or infinite): lower the recipe's rate"
        )


def _is_number(metrics: Mapping[str, float]) -> bool:
    return all(abs(value) < float("inf") for value in metrics.values())
