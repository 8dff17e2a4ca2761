"""One round: the server broadcasts, clients train and answer, the server takes the mean."""

from collections.abc import Mapping, Sequence

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
from overheard.federation.cohort import gather, moment
from overheard.federation.federation import Federation
from overheard.learning.train import train_cohort

TO_SERVER = frozenset({SERVER})
TO_NOBODY = frozenset[Party]()

TRAINING_BYTES = 2 * 2**30
"""Memory for the clients that train at once. A fixed figure: how many train at once moves the
last bits of what they learn, and a run that goes on after a kill may find less memory free."""

COPIES_OF_WEIGHTS = 6
"""Of each client in training: weights, gradients, two moments, scratch and the change."""

LARGEST_CHUNK = 32
"""Beyond it, more clients at once train no faster (see `learning.memory`)."""


def hold(federation: Federation, said: OpenRound, number: int, weights: Weights) -> None:
    """Let everyone say what there is to say in this round.

    In order: the broadcast, a `Missing` from each client that was asked and failed, the
    updates in the order of the clients and, where no update can be read, their aggregate.
    Each update is on the disk before the next is trained.
    """
    said.send(broadcast(federation, number, weights))
    cohort = gather(federation, number)
    for party, reason in cohort.missing.items():
        said.send(Message(number, party, TO_SERVER, Missing(reason)))
    if not cohort.members:
        return
    training = Training(federation.build_model, federation.recipe)
    for defense in federation.defenses:
        training = defense.on_training(training)
    trained = train_cohort(
        training.build_model,
        weights,
        cohort.pool,
        cohort.members,
        training.recipe,
        seed=federation.seed.child("training"),
        round=number,
        engine=federation.engine,
        chunk=_chunk(weights),
        workers=federation.workers,
        device=federation.device,
    )
    answers = []
    for member, learned in zip(cohort.members, trained, strict=True):
        party = Party(member.name)
        update = Update(learned.delta, len(member.rows), {"loss": learned.loss})
        _refuse_divergence(update, number, party)
        for defense in federation.defenses:
            update = defense.on_update(update, moment(federation, defense, number, party))
        readers = TO_NOBODY if federation.is_masked else TO_SERVER
        answers.append(said.send(Message(number, party, readers, update)))
    if federation.is_masked:
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


def _chunk(weights: Weights) -> int:
    size = sum(tensor.numel() * tensor.element_size() for tensor in weights.values())
    return min(LARGEST_CHUNK, max(1, TRAINING_BYTES // (COPIES_OF_WEIGHTS * size)))


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
