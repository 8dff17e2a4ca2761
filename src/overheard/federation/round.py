"""One round: the server broadcasts, clients train and send updates, the server averages."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import final

import torch
from torch import Tensor

from overheard.archive.recorder import OpenRound
from overheard.core.defense import Defense, LocalTraining
from overheard.core.errors import PlanError
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    Message,
    MissingReply,
    Update,
    Weights,
)
from overheard.core.own_code.defense_results import check_returned_update
from overheard.core.own_code.guard import explain_failures
from overheard.core.parties import COHORT, SERVER, Party
from overheard.core.view import mean_update
from overheard.federation.cohort import Cohort, defense_context, sample_cohort
from overheard.federation.federation import Federation
from overheard.learning.sent_tensors import without_negative_variances
from overheard.learning.train import train_groups
from overheard.learning.training_job import ClientResult, TrainingGroup

TO_SERVER = frozenset({SERVER})
TO_NO_PARTY = frozenset[Party]()

TRAINING_BYTES = 2 * 2**30
"""Memory for the clients that train at once. It is fixed, because the number of clients changes
the last bits, and a resumed run may find less free memory."""

COPIES_OF_WEIGHTS = 6
"""Copies of the weights per client: weights, gradients, two moments, scratch and update."""

ON_TRAINING = "it takes and returns a LocalTraining"
ON_UPDATE = "it takes an Update and a DefenseContext and returns an Update"
ON_AGGREGATE = "it takes an Aggregate and a DefenseContext and returns an Aggregate"

LARGEST_CHUNK = 32
"""Most clients at once; more train no faster (see `learning.memory`)."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class FederationRound:
    """The part of one federation in a round that several federations run at once.

    Args:
        federation: the federation.
        weights: its global model at the start of the round.
        record: where to record the round; None if it is recorded already. Its clients then
            train only so that the other clients of the stack get the same bits.

    """

    federation: Federation
    weights: Weights
    record: OpenRound | None


def run_round(sessions: Sequence[FederationRound], number: int) -> None:
    """Run one round of several federations, and record its messages.

    The messages of each federation, in order: the broadcast, a `MissingReply` from each sampled
    client that failed, the updates in the order of the clients and, if no party can read
    updates, their aggregate. Each update is written to disk before the next chunk trains.

    Args:
        sessions: the federations of one stack of `stacks`; `check_together` accepts them.
        number: number of the round.

    """
    cohorts = [_begin_round(session, number) for session in sessions]
    first = sessions[0].federation
    training = LocalTraining(first.build_model, first.recipe)
    for defense in first.defenses:
        with explain_failures(f"defense {defense.name}: on_training", ON_TRAINING):
            training = defense.on_training(training)
    trained = train_groups(
        training.build_model,
        [
            TrainingGroup(
                session.weights,
                cohort.pool,
                cohort.clients,
                session.federation.seed.child("training"),
            )
            for session, cohort in zip(sessions, cohorts, strict=True)
        ],
        training.recipe,
        round=number,
        engine=first.engine,
        chunk=clients_at_once(sessions[0].weights),
        workers=first.workers,
        device=first.device,
    )
    for session, cohort in zip(sessions, cohorts, strict=True):
        results = islice(trained, len(cohort.clients))
        if session.record is None:
            deque(results, maxlen=0)
        else:
            _record_updates(session.federation, session.record, number, results)


def clients_at_once(weights: Weights) -> int:
    """Return how many clients with such a model train at once."""
    size = sum(tensor.numel() * tensor.element_size() for tensor in weights.values())
    return min(LARGEST_CHUNK, max(1, TRAINING_BYTES // (COPIES_OF_WEIGHTS * size)))


def _begin_round(session: FederationRound, number: int) -> Cohort:
    """Record the messages that precede training, and return the cohort."""
    cohort = sample_cohort(session.federation, number)
    if session.record is not None:
        session.record.record(broadcast_message(session.federation, number, session.weights))
        for party, reason in cohort.missing.items():
            session.record.record(Message(number, party, TO_SERVER, MissingReply(reason)))
    return cohort


def _record_updates(
    federation: Federation, record: OpenRound, number: int, results: Iterator[ClientResult]
) -> None:
    """Record each update as it is trained and, if no party can read updates, their mean."""
    sent = []
    for result in results:
        party = Party(result.client.name)
        update = Update(result.delta, len(result.client.rows), {"loss": result.loss})
        _check_convergence(update, number, party)
        for defense in federation.defenses_of(party):
            context = defense_context(federation, defense, number, party)
            with explain_failures(f"defense {defense.name}: on_update", ON_UPDATE):
                defended = defense.on_update(update, context)
            check_returned_update(defense, update, defended, "on_update")
            update = defended
        readers = TO_NO_PARTY if federation.is_masked else TO_SERVER
        sent.append(record.record(Message(number, party, readers, update)))
    if federation.is_masked and sent:
        aggregate = _mean_aggregate(federation, number, sent)
        record.record(Message(number, COHORT, TO_SERVER, aggregate))


def broadcast_message(federation: Federation, number: int, weights: Weights) -> Message:
    """Build the message that sends the global model to all clients."""
    return Message(number, SERVER, frozenset(federation.clients), Broadcast(weights))


def next_weights(
    federation: Federation, number: int, messages: Sequence[Message]
) -> dict[str, Tensor]:
    """Compute the global model after this round from the messages of the round.

    McMahan et al. 2017, Algorithm 1: the old model plus the mean of the updates, weighted by
    their numbers of examples. Without any update the old model stays. A running variance that
    a defense's noise made negative becomes 0.
    """
    old = _broadcast_weights(messages)
    aggregate = _aggregate(federation, number, messages)
    if aggregate is None:
        return old
    for defense in federation.defenses:
        if defense.enforced_at == "server":
            aggregate = _on_aggregate(federation, defense, number, aggregate)
    new = {
        name: (tensor + aggregate.delta[name]).to(tensor.dtype) for name, tensor in old.items()
    }
    return without_negative_variances(new)


def _broadcast_weights(messages: Sequence[Message]) -> dict[str, Tensor]:
    for message in messages:
        if isinstance(message.body, Broadcast):
            return dict(message.body.weights)
    raise AssertionError("every round begins with a broadcast")


def _aggregate(
    federation: Federation, number: int, messages: Sequence[Message]
) -> Aggregate | None:
    """Return the aggregate that the server received, or the mean of the updates, if any."""
    for message in messages:
        if isinstance(message.body, Aggregate):
            return message.body
    sent = [message for message in messages if isinstance(message.body, Update)]
    return _mean_aggregate(federation, number, sent) if sent else None


def _mean_aggregate(
    federation: Federation, number: int, messages: Sequence[Message]
) -> Aggregate:
    """Average the updates, and apply the defenses that act before the server reads the mean."""
    updates = [message.body for message in messages if isinstance(message.body, Update)]
    mean = mean_update(updates)
    cohort = frozenset(message.sender for message in messages)
    aggregate = Aggregate(mean.delta, cohort, mean.examples)
    for defense in federation.defenses:
        if defense.enforced_at != "server":
            aggregate = _on_aggregate(federation, defense, number, aggregate)
    return aggregate


def _on_aggregate(
    federation: Federation, defense: Defense, number: int, aggregate: Aggregate
) -> Aggregate:
    context = defense_context(federation, defense, number, SERVER)
    with explain_failures(f"defense {defense.name}: on_aggregate", ON_AGGREGATE):
        defended = defense.on_aggregate(aggregate, context)
    check_returned_update(defense, aggregate, defended, "on_aggregate")
    return defended


def _check_convergence(update: Update, number: int, party: Party) -> None:
    """Refuse an update with NaN or infinite numbers, while its cause is known."""
    finite = all(bool(torch.isfinite(tensor).all()) for tensor in update.delta.values())
    if not (finite and _is_number(update.metrics)):
        raise PlanError(
            f"the training of {party} diverged in round {number} (its weights or its loss are "
            "NaN or infinite); lower the recipe's rate"
        )


def _is_number(metrics: Mapping[str, float]) -> bool:
    return all(abs(value) < float("inf") for value in metrics.values())
