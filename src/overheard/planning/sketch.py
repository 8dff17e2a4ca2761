"""A sketch of a run before it is simulated: who sends what to whom, with made-up numbers."""

from collections.abc import Sequence

import torch
from torch import Tensor

from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Message,
    MessageBody,
    Update,
    Weights,
)
from overheard.core.parties import COHORT, SERVER, Party, joining_round, late_joiner
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.federation.federation import Federation
from overheard.federation.home import home_names
from overheard.learning.initialization import initial_weights

SKETCHED_ROUNDS = 4
"""Rounds of a sketch: attacks on changes between rounds need several."""

STEP = 1e-3
"""Typical size of a made-up change of a weight."""

TO_SERVER = frozenset({SERVER})


def sketch_transcript(federation: Federation) -> Transcript:
    """Return the messages of a few rounds in which every client takes part.

    The weights are fresh and the updates random: nothing is trained. All clients of a round
    send the same change, so that large federations fit into memory. What the messages tell is
    who can read them, and the shapes of their tensors.
    """
    at_home = home_names(federation.algorithm, federation.build_model)
    initial = initial_weights(federation.build_model, Seed(0))
    weights = {name: one for name, one in initial.items() if name not in at_home}
    everyone = frozenset(federation.clients)
    readers = frozenset[Party]() if federation.is_masked else TO_SERVER
    messages = list[Message]()
    for number in range(min(SKETCHED_ROUNDS, federation.rounds)):
        messages.append(Message(number, SERVER, everyone, Broadcast(weights)))
        if federation.distillation is not None:
            distilled = _distilled_set(federation)
            messages.append(Message(number, SERVER, everyone, distilled))
            messages += [Message(number, one, TO_SERVER, distilled) for one in everyone]
        change = _random_change(weights, Seed(0).child(number))
        for place, party in enumerate(federation.clients):
            size = max(1, len(federation.rows[number][place]))
            body: MessageBody = Update(change, size, {"loss": 1.0})
            messages.append(Message(number, Party(party), readers, body))
        if federation.is_masked:
            total = sum(map(len, federation.rows[number]))
            body = Aggregate(change, everyone, total)
            messages.append(Message(number, COHORT, TO_SERVER, body))
    return Transcript(tuple(messages))


def sketched_observers(observers: Sequence[Party], rounds: int) -> tuple[Party, ...]:
    """Return observers of a sketch that see as much of it as these of a run.

    A run has a broadcast after its last round, and a sketch has none. A client that joins some
    broadcasts before the last one of the run does so in the sketch.
    """
    last = min(SKETCHED_ROUNDS, rounds) - 1
    return tuple(
        one
        if (joined := joining_round(one)) is None
        else late_joiner(max(0, last - (rounds - joined)))
        for one in observers
    )


def _random_change(weights: Weights, seed: Seed) -> dict[str, Tensor]:
    generator = seed.generator()
    return {
        name: STEP * torch.randn(weight.shape, generator=generator).to(weight.dtype)
        for name, weight in weights.items()
    }


def _distilled_set(federation: Federation) -> DistilledSet:
    classes = federation.task.classes
    inputs = torch.zeros(classes, *federation.task.shape)
    ones = torch.ones(classes)
    return DistilledSet(inputs, torch.eye(classes), STEP * ones, ones)
