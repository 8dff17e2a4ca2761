"""One round: the server broadcasts, clients train and send updates, the server averages."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import isfinite
from typing import final

from overheard.archive.recorder import OpenRound
from overheard.core.algorithm.algorithm import LOCAL_STEPS, ServerState
from overheard.core.custom_code.defense_results import check_returned_update
from overheard.core.custom_code.guard import explain_failures
from overheard.core.defense import clear_metrics
from overheard.core.errors import PlanError
from overheard.core.messages import (
    Broadcast,
    Message,
    MissingReply,
    Update,
    Weights,
    is_finite,
)
from overheard.core.parties import COHORT, SERVER, Party
from overheard.core.recipe import Recipe
from overheard.federation.cohort import Cohort, defense_context, local_training, sample_cohort
from overheard.federation.federation import Federation
from overheard.federation.local_tensors import LocalTensors
from overheard.federation.round_messages import RoundMessages
from overheard.federation.server import aggregate_updates, received_updates
from overheard.learning.train import train_groups
from overheard.learning.training_job import ClientResult, TrainingGroup

TO_SERVER = frozenset({SERVER})
TO_NO_PARTY = frozenset[Party]()

TRAINING_BYTES = 2 * 2**30
"""Memory for the clients that train at once. It is fixed, because the number of clients changes
the last bits, and a resumed run may find less free memory."""

COPIES_OF_WEIGHTS = 6
"""Copies of the weights per client: weights, gradients, two moments, scratch and update."""

ON_UPDATE = "it takes an Update and a DefenseContext and returns an Update"

LARGEST_CHUNK = 32
"""Most clients at once; more train no faster (see `learning.memory`)."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class FederationRound:
    """The part of one federation in a round that several federations run at once.

    Args:
        federation: the federation.
        state: the state of its server at the start of the round.
        record: where to record the round; None if it is recorded already. Its clients then
            train only so that the other clients of the stack get the same bits.
        home: the tensors that stay with each client; None = all are sent.

    """

    federation: Federation
    state: ServerState
    record: OpenRound | RoundMessages | None
    home: LocalTensors | None = None

    def training_groups(self, number: int, cohort: Cohort) -> tuple[TrainingGroup, ...]:
        """Return the clients by the weights from which they start."""
        algorithm, seed = self.federation.algorithm, self.federation.seed.child("training")
        clients = tuple(
            replace(one, correction=algorithm.correction(self.state, Party(one.name)))
            for one in cohort.clients
        )
        shared, home = self.state.weights, self.home
        if home is None:
            return (TrainingGroup(shared, cohort.pool, clients, seed),)
        return tuple(
            TrainingGroup(
                home.model_of(Party(one.name), number, shared), cohort.pool, (one,), seed
            )
            for one in clients
        )


def run_round(sessions: Sequence[FederationRound], number: int) -> None:
    """Run one round of several federations, and record its messages.

    The messages of each federation, in order: the broadcast, a `MissingReply` from each sampled
    client that failed, the updates in the order of the clients and, if no party can read
    updates, their aggregate. Each update is written to disk before the next chunk trains.

    Args:
        sessions: the federations of one stack (`stacking.split_into_stacks`), which
            `stacking.check_stackable` accepts.
        number: number of the round.

    """
    cohorts = [_begin_round(session, number) for session in sessions]
    first = sessions[0].federation
    training = local_training(first)
    trained = train_groups(
        training.build_model,
        [
            group
            for session, cohort in zip(sessions, cohorts, strict=True)
            for group in session.training_groups(number, cohort)
        ],
        training.recipe,
        round=number,
        engine=first.engine,
        chunk=clients_at_once(sessions[0].state.weights),
        workers=first.workers,
        device=first.device,
    )
    for session, cohort in zip(sessions, cohorts, strict=True):
        results = islice(trained, len(cohort.clients))
        if session.record is None:
            deque(results, maxlen=0)
        else:
            _record_updates(session, number, training.recipe, results)


def clients_at_once(weights: Weights) -> int:
    """Return how many clients with such a model train at once."""
    size = sum(tensor.numel() * tensor.element_size() for tensor in weights.values())
    return min(LARGEST_CHUNK, max(1, TRAINING_BYTES // (COPIES_OF_WEIGHTS * size)))


def _begin_round(session: FederationRound, number: int) -> Cohort:
    """Record the messages that precede training, and return the cohort."""
    cohort = sample_cohort(session.federation, number)
    if session.record is not None:
        session.record.record(broadcast_message(session.federation, number, session.state))
        for party, reason in cohort.missing.items():
            session.record.record(Message(number, party, TO_SERVER, MissingReply(reason)))
    return cohort


def _record_updates(
    session: FederationRound, number: int, recipe: Recipe, results: Iterator[ClientResult]
) -> None:
    """Record each update as it is trained and, if no party can read updates, their mean."""
    sent, federation, record = [], session.federation, session.record
    deltas = dict[Party, Weights]()
    assert record is not None, "a round that is recorded already needs no second record"
    for result in results:
        party = Party(result.client.name)
        update = _trained_update(session, recipe, result)
        _check_convergence(update, result.loss, number, party)
        if session.home is not None:
            deltas[party] = update.delta
            update = replace(update, delta=session.home.sent_part(update.delta))
        for defense in federation.defenses_of(party):
            context = defense_context(federation, defense, number, party)
            with explain_failures(f"defense {defense.name}: on_update", ON_UPDATE):
                defended = defense.on_update(update, context)
            check_returned_update(defense, update, defended, "on_update")
            update = defended
        readers = TO_NO_PARTY if federation.is_masked else TO_SERVER
        sent.append(record.record(Message(number, party, readers, update)))
    if session.home is not None:
        session.home.write(number, deltas)
    if federation.is_masked and sent:
        received = received_updates(federation, number, sent)
        aggregate = aggregate_updates(federation, number, received)
        record.record(Message(number, COHORT, TO_SERVER, aggregate))


def _trained_update(session: FederationRound, recipe: Recipe, result: ClientResult) -> Update:
    """Return the update of a trained client, before its defenses."""
    client, algorithm = result.client, session.federation.algorithm
    steps = client.steps_in(recipe)
    metrics = clear_metrics(result.loss, session.federation.defenses_of(Party(client.name)))
    reported = algorithm.reported_steps(recipe, steps)
    if reported is not None:
        metrics[LOCAL_STEPS] = float(reported)
    control = algorithm.control_change(
        session.state, Party(client.name), result.delta, steps * recipe.rate
    )
    return Update(result.delta, len(client.rows), metrics, control)


def broadcast_message(federation: Federation, number: int, state: ServerState) -> Message:
    """Build the message that sends the global model to all clients."""
    body = Broadcast(state.weights, control=federation.algorithm.sent_control(state))
    return Message(number, SERVER, frozenset(federation.clients), body)


def _check_convergence(update: Update, loss: float, number: int, party: Party) -> None:
    """Refuse an update with NaN or infinite numbers, while its cause is known."""
    finite = all(map(is_finite, update.delta.values()))
    if not (finite and isfinite(loss)):
        raise PlanError(
            f"the training of {party} diverged in round {number} (its weights or its loss are "
            "NaN or infinite); lower the recipe's rate"
        )
