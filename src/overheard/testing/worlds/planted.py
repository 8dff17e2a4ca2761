"""A federation so small that every attack hears all of it within a second."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import torch
from torch import Tensor, nn

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.means import Means, MemoryShelf
from overheard.core.messages import Aggregate, Broadcast, DistilledSet, Message, Update
from overheard.core.parties import SERVER, Party, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.core.view import View, mean_update
from overheard.learning.cohort import Member
from overheard.learning.distillation.methods.flip import Flip
from overheard.learning.distillation.moments import forgotten
from overheard.learning.distillation.synthetic import noise
from overheard.learning.initial import initial_weights
from overheard.learning.train import train_cohort

CLASSES = 4
FEATURES = 12
RECIPE = Recipe(rate=0.2, epochs=1, batch=8)

SKEWED = ((32, 4, 2, 2), (2, 32, 4, 2), (2, 2, 32, 4), (4, 2, 2, 32))
EVEN = ((10, 10, 10, 10),) * 4

MEANS = Means(virtual_clients=200, shelf=MemoryShelf(), workers=1)
"""So few virtual clients that they are trained in a moment, and only once."""


def build() -> nn.Module:
    """Give a net with one layer between."""
    return nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), nn.Linear(16, CLASSES))


def blobs(counts: Sequence[int], seed: Seed) -> Examples:
    """Gaussian clouds, one a class, far enough apart to be told by a small net."""
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    centres = torch.randn(CLASSES, FEATURES, generator=Seed(1).generator()) * 1.5
    noise = torch.randn(len(labels), FEATURES, generator=seed.generator())
    return Examples(centres[labels] + noise, labels)


@dataclass(frozen=True, eq=False)
class Overheard:
    """A run of one round, its truth and what the attacker knows."""

    transcript: Transcript
    truth: GroundTruth
    knowledge: Knowledge
    start: dict[str, Tensor]
    deltas: tuple[dict[str, Tensor], ...]
    sets: tuple[DistilledSet, ...]

    @property
    def targets(self) -> tuple[Party, ...]:
        """Every client."""
        return tuple(client(number) for number in range(len(self.deltas)))


def hold(
    start: dict[str, Tensor],
    deltas: Sequence[dict[str, Tensor]],
    counts: Sequence[Sequence[int]],
    auxiliary: Examples,
    sets: Sequence[DistilledSet] = (),
) -> Overheard:
    """One round in which the server reads every update and, if there are any, distilled sets.

    The first of the sets is the server's.
    """
    clients = [client(number) for number in range(len(deltas))]
    said = [Message(0, SERVER, frozenset(clients), Broadcast(start))]
    said += [
        Message(0, who, frozenset({SERVER}), Update(delta, sum(mine)))
        for who, delta, mine in zip(clients, deltas, counts, strict=True)
    ]
    said += [
        Message(0, who, frozenset({SERVER, *clients}), own)
        for who, own in zip((SERVER, *clients)[: len(sets)], sets, strict=True)
    ]
    truth = {(0, who): torch.tensor(mine) for who, mine in zip(clients, counts, strict=True)}
    knowledge = Knowledge(CLASSES, build, auxiliary, RECIPE, means=MEANS)
    return Overheard(
        Transcript(tuple(said)),
        GroundTruth(truth, {}),
        knowledge,
        start,
        tuple(deltas),
        tuple(sets),
    )


def holding(counts: Sequence[Sequence[int]]) -> tuple[Examples, list[Member]]:
    """One client on each of these label counts."""
    held = [blobs(mine, Seed(10 + place)) for place, mine in enumerate(counts)]
    pool = Examples(
        torch.cat([one.inputs for one in held]), torch.cat([one.labels for one in held])
    )
    ends = torch.tensor([len(one) for one in held]).cumsum(0).tolist()
    members = [
        Member(f"{place}", torch.arange(end - len(one), end))
        for place, (end, one) in enumerate(zip(ends, held, strict=True))
    ]
    return pool, members


def distil(
    start: dict[str, Tensor], counts: Sequence[Sequence[int]]
) -> tuple[DistilledSet, ...]:
    """What the server sends, and what each of these clients makes of it in a round."""
    task = Task((FEATURES,), tuple("abcd"))
    shared, how = noise(task, 2, 0.1, Seed(6)), Flip(samples=2, steps=3, batch=40)
    pool, members = holding(counts)
    done = how.distiller(build, start).distil(
        shared,
        pool,
        members,
        forgotten(shared, len(members)),
        round=0,
        scale=1.0,
        seed=Seed(7),
    )
    whole = [shared, *(done.examples.map(itemgetter(place)) for place in range(len(members)))]
    return tuple(
        DistilledSet(one.inputs, one.labels, one.rates, torch.ones(len(one.rates)))
        for one in whole
    )


def learn(
    start: dict[str, Tensor], counts: Sequence[Sequence[int]], number: int = 0
) -> list[dict[str, Tensor]]:
    """Train one client on each of these label counts, from one start, in this round."""
    pool, members = holding(counts)
    trained = train_cohort(build, start, pool, members, RECIPE, seed=Seed(4), round=number)
    return [dict(one.delta) for one in trained]


def federate(counts: Sequence[Sequence[int]]) -> Overheard:
    """One round of one client on each of these label counts."""
    start = dict(initial_weights(build, Seed(3)))
    auxiliary = blobs((12,) * CLASSES, Seed(99))
    return hold(start, learn(start, counts), counts, auxiliary, distil(start, counts))


def federate_often(
    heard: Sequence[Sequence[int]], *, told: bool = True, summed: bool = False
) -> View:
    """What the server reads of the `SKEWED` clients over some rounds of averaging.

    Args:
        heard: the numbers of those who answer, round by round.
        told: whether updates say their size.
        summed: whether only the mean of a round's updates is read.

    """
    said = []
    start = dict(initial_weights(build, Seed(3)))
    server = frozenset({SERVER})
    for number, answering in enumerate(heard):
        clients = [client(place) for place in answering]
        said.append(Message(number, SERVER, frozenset(clients), Broadcast(start)))
        deltas = learn(start, SKEWED, number)
        updates = [Update(deltas[n], sum(SKEWED[n]) if told else None) for n in answering]
        mean = mean_update(updates)
        if summed:
            aggregate = Aggregate(mean.delta, frozenset(clients), mean.examples)
            said.append(Message(number, SERVER, server, aggregate))
        else:
            said += [
                Message(number, who, server, update)
                for who, update in zip(clients, updates, strict=True)
            ]
        start = {name: weight + mean.delta[name] for name, weight in start.items()}
    return View(server, tuple(said))
