"""Federations, with a shift or without, that every attack follows within a second."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import torch
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.means import Means, MemoryShelf
from overheard.core.messages import Body, Broadcast, Message, Update, Weights, moved
from overheard.core.parties import SERVER, Party, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.core.view import mean_update
from overheard.learning.cohort import Member
from overheard.learning.initial import initial_weights
from overheard.learning.train import train_cohort
from overheard.testing.worlds.planted import CLASSES, blobs, build

ROUNDS: Final = 13
SINCE: Final = 10
"""The first round in which new examples are used."""

SOON = range(SINCE, SINCE + 3)

EVEN = ((20, 20, 20, 20),) * 4
SKEWED = ((64, 8, 4, 4), (4, 64, 8, 4), (4, 4, 64, 8), (8, 4, 4, 64))

RECIPE = Recipe(rate=0.2, epochs=1, batch=1000)
"""One step on all examples: nothing but examples moves an update."""

SETTLING = Recipe(rate=0.2, epochs=10, batch=8)
"""So that the first rounds do not move more than a shift does."""


MEANS = Means(virtual_clients=24, shelf=MemoryShelf(), workers=1)


@dataclass(frozen=True, eq=False)
class ShiftingRun:
    """A run of some rounds, its truth and what the attacker knows."""

    transcript: Transcript
    truth: GroundTruth
    knowledge: Knowledge

    @property
    def targets(self) -> tuple[Party, ...]:
        """Every client."""
        return tuple(client(number) for number in range(len(EVEN)))


def federate_on(after: Sequence[Sequence[int]] | None, seed: Seed) -> ShiftingRun:
    """Four even clients, who go over to fresh examples of these label counts at `SINCE`.

    None = they keep their examples. Even counts = an exchange without a shift.
    """
    clients = [client(number) for number in range(len(EVEN))]
    start = _settled(seed)
    said, truth = list[Message](), dict[tuple[int, Party], Tensor]()
    for number in range(ROUNDS):
        fresh = after is not None and number >= SINCE
        counts = EVEN if after is None or number < SINCE else after
        said.append(Message(number, SERVER, frozenset(clients), Broadcast(start)))
        updates = [
            Update(delta, sum(mine))
            for delta, mine in zip(
                _deltas(start, counts, seed.child("fresh", int(fresh)), RECIPE),
                counts,
                strict=True,
            )
        ]
        said += [
            Message(number, who, frozenset({SERVER}), update)
            for who, update in zip(clients, updates, strict=True)
        ]
        truth |= {
            (number, who): torch.tensor(mine) for who, mine in zip(clients, counts, strict=True)
        }
        start = moved(start, mean_update(updates).delta)
    said.append(Message(ROUNDS, SERVER, frozenset(clients), Broadcast(start)))
    shifts = {} if after in (None, EVEN) else dict.fromkeys(clients, (SINCE,))
    knowledge = Knowledge(CLASSES, build, blobs((12,) * CLASSES, Seed(99)), RECIPE, means=MEANS)
    return ShiftingRun(Transcript(tuple(said)), GroundTruth(truth, {}, shifts), knowledge)


def renumbered(run: ShiftingRun, order: Tensor) -> ShiftingRun:
    """The same run, where new class i is old class order[i]."""

    def rows(weights: Weights) -> dict[str, Tensor]:
        last = {"2.weight", "2.bias"}
        return {name: w[order] if name in last else w for name, w in weights.items()}

    def body(said: Body) -> Body:
        if isinstance(said, Broadcast):
            return Broadcast(rows(said.weights))
        assert isinstance(said, Update)
        return Update(rows(said.delta), said.examples)

    auxiliary = run.knowledge.auxiliary
    assert auxiliary is not None
    counts = {place: held[order] for place, held in run.truth.counts.items()}
    return ShiftingRun(
        Transcript(tuple(replace(m, body=body(m.body)) for m in run.transcript.messages)),
        replace(run.truth, counts=counts),
        replace(
            run.knowledge,
            auxiliary=Examples(auxiliary.inputs, order.argsort()[auxiliary.labels]),
        ),
    )


def _settled(seed: Seed) -> dict[str, Tensor]:
    start = dict(initial_weights(build, Seed(3)))
    (delta,) = _deltas(start, ((40,) * CLASSES,), seed.child("settling"), SETTLING)
    return moved(start, delta)


def _deltas(
    start: Weights, counts: Sequence[Sequence[int]], seed: Seed, recipe: Recipe
) -> list[dict[str, Tensor]]:
    held = [blobs(mine, seed.child(place)) for place, mine in enumerate(counts)]
    pool = Examples(
        torch.cat([one.inputs for one in held]), torch.cat([one.labels for one in held])
    )
    ends = torch.tensor([len(one) for one in held]).cumsum(0).tolist()
    members = [
        Member(f"{place}", torch.arange(end - len(one), end))
        for place, (end, one) in enumerate(zip(ends, held, strict=True))
    ]
    trained = train_cohort(build, start, pool, members, recipe, seed=seed, round=0)
    return [dict(one.delta) for one in trained]
