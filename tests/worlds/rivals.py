"""Two clients who learn digits together; one of them listens, and the other may shift."""

from functools import cache, partial
from typing import Final

import torch
from torch import Tensor

from overheard.core.defense import BuildModel
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Message, Update, moved
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.view import View, mean_update
from overheard.data.datasets.digits import Digits
from overheard.learning.cohort import Member
from overheard.learning.initial import initial_weights
from overheard.learning.models.mlp import Mlp
from overheard.learning.train import train_cohort

ROUNDS: Final = 36
SINCE: Final = 30
SIZE: Final = 200

DIGITS = Digits().load(None)
BUILD: BuildModel = partial(Mlp(hidden=(32,)).build, DIGITS.task)
RECIPE = Recipe(rate=0.1, epochs=2, batch=SIZE)
"""Whole batches: nothing but examples moves an update."""

SOON: Final = 5
"""As `SINCE`, in a run of `FEW` rounds."""

FEW: Final = 9

STEPS = Recipe(rate=0.001, epochs=2, batch=20, optimizer="adam")
"""Many steps a round, as clients take them."""

KNOWLEDGE = Knowledge(DIGITS.task.classes, BUILD, DIGITS.test, RECIPE)

LISTENERS: Final = torch.randperm(len(DIGITS.train), generator=Seed(9).generator())[:400]
"""Rows of examples that no client ever holds."""


def overheard_by_rival(even: float | None, seed: int) -> View:
    """What client/0 reads, where client/1 goes over to new examples at `SINCE`.

    Args:
        even: the share of even digits among them, one half before; None = it keeps the old.
        seed: of the examples and the first weights.

    """
    return _run(even, seed, RECIPE, ROUNDS, SINCE).seen_by(client(0))


def in_many_steps(even: float | None, seed: int) -> Transcript:
    """The same in few rounds of `STEPS`, for those who imitate clients."""
    return _run(even, seed, STEPS, FEW, SOON)


@cache
def _run(even: float | None, seed: int, recipe: Recipe, rounds: int, since: int) -> Transcript:
    own = _rows(0.5, Seed(seed).child("own"), torch.tensor([], dtype=torch.long))
    old = _rows(0.5, Seed(seed).child("old"), own)
    new = old if even is None else _rows(even, Seed(seed).child("new"), torch.cat([own, old]))
    both, start = (client(0), client(1)), dict(initial_weights(BUILD, Seed(seed)))
    said = []
    for number in range(rounds):
        theirs = old if number < since else new
        said.append(Message(number, SERVER, frozenset(both), Broadcast(start)))
        members = [Member(both[0], own), Member(both[1], theirs)]
        updates = [
            Update(dict(one.delta), SIZE)
            for one in train_cohort(
                BUILD, start, DIGITS.train, members, recipe, seed=Seed(seed), round=number
            )
        ]
        said += [
            Message(number, who, frozenset({SERVER}), update)
            for who, update in zip(both, updates, strict=True)
        ]
        start = moved(start, mean_update(updates).delta)
    said.append(Message(rounds, SERVER, frozenset(both), Broadcast(start)))
    return Transcript(tuple(said))


def _rows(even: float, seed: Seed, taken: Tensor) -> Tensor:
    labels = DIGITS.train.labels
    order = torch.randperm(len(labels), generator=seed.generator())
    free = order[~torch.isin(order, torch.cat([taken, LISTENERS]))]
    evens, odds = free[labels[free] % 2 == 0], free[labels[free] % 2 == 1]
    count = round(even * SIZE)
    return torch.cat([evens[:count], odds[: SIZE - count]])
