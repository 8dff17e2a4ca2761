"""A federation so small that every attack hears all of it within a second."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.learning.cohort import Member
from overheard.learning.initial import initial_weights
from overheard.learning.train import train_cohort

CLASSES = 4
FEATURES = 12
RECIPE = Recipe(rate=0.2, epochs=1, batch=8)

SKEWED = ((32, 4, 2, 2), (2, 32, 4, 2), (2, 2, 32, 4), (4, 2, 2, 32))
EVEN = ((10, 10, 10, 10),) * 4


def build() -> nn.Module:
    return nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), nn.Linear(16, CLASSES))


def blobs(counts: Sequence[int], seed: Seed) -> Examples:
    """Gaussian clouds, one a class, far enough apart to be told by a small net."""
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    centres = torch.randn(CLASSES, FEATURES, generator=Seed(1).generator()) * 1.5
    noise = torch.randn(len(labels), FEATURES, generator=seed.generator())
    return Examples(centres[labels] + noise, labels)


@dataclass(frozen=True)
class Overheard:
    """A run of one round, its truth and what the attacker knows."""

    transcript: Transcript
    truth: GroundTruth
    knowledge: Knowledge
    start: dict[str, Tensor]
    deltas: tuple[dict[str, Tensor], ...]


def hold(
    start: dict[str, Tensor],
    deltas: Sequence[dict[str, Tensor]],
    counts: Sequence[Sequence[int]],
    auxiliary: Examples,
) -> Overheard:
    """One round in which the server reads every update."""
    clients = [client(number) for number in range(len(deltas))]
    said = [Message(0, SERVER, frozenset(clients), Broadcast(start))]
    said += [
        Message(0, who, frozenset({SERVER}), Update(delta, sum(mine)))
        for who, delta, mine in zip(clients, deltas, counts, strict=True)
    ]
    truth = {(0, who): torch.tensor(mine) for who, mine in zip(clients, counts, strict=True)}
    knowledge = Knowledge(CLASSES, build, auxiliary, RECIPE)
    return Overheard(
        Transcript(tuple(said)), GroundTruth(truth, {}), knowledge, start, tuple(deltas)
    )


def federate(counts: Sequence[Sequence[int]]) -> Overheard:
    """Train one client on each of these label counts, from one start."""
    start = dict(initial_weights(build, Seed(3)))
    held = [blobs(mine, Seed(10 + number)) for number, mine in enumerate(counts)]
    pool = Examples(
        torch.cat([one.inputs for one in held]), torch.cat([one.labels for one in held])
    )
    ends = torch.tensor([len(one) for one in held]).cumsum(0).tolist()
    members = [
        Member(f"{number}", torch.arange(end - len(one), end))
        for number, (end, one) in enumerate(zip(ends, held, strict=True))
    ]
    trained = train_cohort(build, start, pool, members, RECIPE, seed=Seed(4), round=0)
    deltas = [dict(one.delta) for one in trained]
    return hold(start, deltas, counts, blobs((12,) * CLASSES, Seed(99)))
