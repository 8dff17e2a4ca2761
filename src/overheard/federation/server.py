"""The server of a run: its model and memory, computed from the messages of earlier rounds."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import final

from overheard.core.algorithm.algorithm import NOTHING, ReceivedUpdate, ServerState
from overheard.core.custom_code.defense_results import check_returned_update
from overheard.core.custom_code.guard import explain_failures
from overheard.core.defense import Defense
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    Message,
    Update,
    Weights,
    weighted_sum,
)
from overheard.core.parties import SERVER
from overheard.federation.cohort import defense_context, draw_round_copies, round_schedule
from overheard.federation.federation import Federation
from overheard.federation.local_tensors import local_names
from overheard.learning.initialization import initial_weights
from overheard.learning.sent_tensors import without_negative_variances

ON_AGGREGATE = "it takes an Aggregate and a DefenseContext and returns an Aggregate"

CLOSE = 1e-12
"""Largest difference of two factors that are the same up to rounding."""


@final
class Server:
    """The server of one run.

    Its state at the start of a round is a function of the messages before, so a resumed run
    computes the same bits. For this it reads the messages of all earlier rounds once, or only
    of the last one if the algorithm has no memory.
    """

    def __init__(
        self, federation: Federation, read_round: Callable[[int], Sequence[Message]]
    ) -> None:
        """Begin before round 0; `read_round` reads the messages of a committed round."""
        self._federation = federation
        self._read_round = read_round
        self._last: tuple[int, ServerState] | None = None
        self._recent: tuple[int, Sequence[Message]] | None = None

    def remember(self, number: int, messages: Sequence[Message] | None) -> None:
        """Keep the messages of a round that was just committed; None = read them."""
        self._recent = None if messages is None else (number, messages)

    def state_at(self, number: int) -> ServerState:
        """Return the state at the start of a round; all rounds before must be committed."""
        federation = self._federation
        if number == 0:
            seed = federation.seed.child("initial")
            start = initial_weights(federation.build_model, seed)
            at_home = local_names(federation.algorithm, federation.build_model)
            shared = {name: start[name] for name in start if name not in at_home}
            return ServerState(shared, clients=len(federation.clients))
        first, memory = 0 if federation.algorithm.has_memory else number - 1, NOTHING
        if self._last is not None and first <= self._last[0] <= number:
            first, state = self._last
            if first == number:
                return state
            memory = state.memory
        for earlier in range(first, number):
            messages = self._messages(earlier)
            # As it was sent: what is on disk does not depend on an interruption.
            weights = broadcast_weights(messages)
            before = ServerState(weights, memory, len(federation.clients))
            received = self._received(earlier, messages)
            state = next_state(federation, earlier, before, messages, received)
            memory = state.memory
        self._last = number, state
        return state

    def _messages(self, number: int) -> Sequence[Message]:
        if self._recent is not None and self._recent[0] == number:
            return self._recent[1]
        return self._read_round(number)

    def _received(self, number: int, messages: Sequence[Message]) -> tuple[ReceivedUpdate, ...]:
        """Return the updates that the step of a round uses, oldest first."""
        schedule = round_schedule(self._federation)
        if schedule is None:
            return received_updates(self._federation, number, messages)
        index_of = {party: index for index, party in enumerate(self._federation.clients)}
        starts = sorted(
            {start for (start, _), step in schedule.steps.items() if step == number}
        )
        return tuple(
            ReceivedUpdate(message.sender, message.body, delay=number - start)
            for start in starts
            for message in (messages if start == number else self._messages(start))
            if isinstance(message.body, Update)
            and schedule.steps.get((start, index_of[message.sender])) == number
        )


def next_state(
    federation: Federation,
    number: int,
    state: ServerState,
    messages: Sequence[Message],
    received: tuple[ReceivedUpdate, ...],
) -> ServerState:
    """Compute the server's state after a round from its messages and the updates that it uses.

    Without any update the state is unchanged. A running variance that a defense's noise made
    negative becomes 0.
    """
    aggregate = _sent_aggregate(messages)
    if aggregate is not None:
        received = ()
    elif received:
        aggregate = aggregate_updates(federation, number, received)
    else:
        return state
    for defense in federation.defenses:
        if defense.enforced_at == "server":
            aggregate = _on_aggregate(federation, defense, number, aggregate)
    after = federation.algorithm.next_state(number, state, aggregate.delta, received)
    return replace(after, weights=without_negative_variances(after.weights))


def received_updates(
    federation: Federation, number: int, messages: Sequence[Message]
) -> tuple[ReceivedUpdate, ...]:
    """Return the updates of a round, in the order in which they were sent."""
    copies = draw_round_copies(federation, number)
    index_of = {party: index for index, party in enumerate(federation.clients)}
    return tuple(
        ReceivedUpdate(message.sender, message.body, copies[index_of[message.sender]])
        for message in messages
        if isinstance(message.body, Update)
    )


def aggregate_updates(
    federation: Federation, number: int, received: Sequence[ReceivedUpdate]
) -> Aggregate:
    """Sum the updates, and apply the defenses that act before the server reads the sum.

    The total number of examples is given if each update counts by its share of it.
    """
    factors = federation.algorithm.factors(received)
    delta = weighted_sum([one.update.delta for one in received], factors)
    cohort = frozenset(one.sender for one in received)
    aggregate = Aggregate(delta, cohort, _total_examples(received, factors))
    for defense in federation.defenses:
        if defense.enforced_at != "server":
            aggregate = _on_aggregate(federation, defense, number, aggregate)
    return aggregate


def broadcast_weights(messages: Sequence[Message]) -> Weights:
    """Return the weights that the server sent at the start of a round."""
    for message in messages:
        if isinstance(message.body, Broadcast):
            return dict(message.body.weights)
    raise AssertionError("every round begins with a broadcast")


def _sent_aggregate(messages: Sequence[Message]) -> Aggregate | None:
    """Return the aggregate that the server received in place of updates, if it did."""
    for message in messages:
        if isinstance(message.body, Aggregate):
            return message.body
    return None


def _total_examples(received: Sequence[ReceivedUpdate], factors: Sequence[float]) -> int | None:
    sizes = [one.update.examples for one in received]
    known = [size for size in sizes if size is not None]
    total = sum(known)
    if len(known) < len(sizes):
        return None
    is_by_size = total == 0 or all(
        abs(factor - size / total) < CLOSE for factor, size in zip(factors, known, strict=True)
    )
    return total if is_by_size else None


def _on_aggregate(
    federation: Federation, defense: Defense, number: int, aggregate: Aggregate
) -> Aggregate:
    context = defense_context(federation, defense, number, SERVER)
    with explain_failures(f"defense {defense.name}: on_aggregate", ON_AGGREGATE):
        defended = defense.on_aggregate(aggregate, context)
    check_returned_update(defense, aggregate, defended, "on_aggregate")
    return defended
