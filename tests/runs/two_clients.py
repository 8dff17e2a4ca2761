"""Two clients who learn digits; one is the observer, and the other may shift."""

from dataclasses import replace
from functools import cache, partial
from typing import Final

import torch
from torch import Tensor

from overheard.core.compute_settings import ComputeSettings, MemoryTensorCache, TensorCache
from overheard.core.defense import BuildModel
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Message, Update, apply_update
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.view import View, mean_update
from overheard.data.datasets.digits import Digits
from overheard.learning.initialization import initial_weights
from overheard.learning.models.mlp import Mlp
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask

ROUNDS: Final = 36
SHIFT_ROUND: Final = 30
SIZE: Final = 200

DIGITS = Digits().load(None)
BUILD: BuildModel = partial(Mlp(hidden=(32,)).build, DIGITS.task)
RECIPE = Recipe(rate=0.1, epochs=2, batch=SIZE)
"""Full batches, so updates depend on the examples alone."""

SHORT_SHIFT_ROUND: Final = 5
"""Like `SHIFT_ROUND`, in a run of `SHORT_ROUNDS` rounds."""

SHORT_ROUNDS: Final = 9

MANY_STEPS = Recipe(rate=0.001, epochs=2, batch=20, optimizer="adam")
"""Many steps a round, as in typical training."""

KNOWLEDGE = Knowledge(DIGITS.task.classes, BUILD, DIGITS.test, RECIPE)

UNUSED_ROWS: Final = torch.randperm(len(DIGITS.train), generator=Seed(9).generator())[:400]
"""Rows of examples that no client holds."""


def knowledge_of_many_steps(
    *, virtual_clients: int = 60, cache: TensorCache | None = None
) -> Knowledge:
    """Return what an attacker that simulates clients knows of a run of `MANY_STEPS`."""
    return replace(
        KNOWLEDGE,
        auxiliary=DIGITS.train.take(UNUSED_ROWS),
        recipe=MANY_STEPS,
        compute=ComputeSettings(
            virtual_clients=virtual_clients, cache=cache or MemoryTensorCache(), workers=1
        ),
    )


def simulate_client_view(even: float | None, seed: int) -> View:
    """Return the view of client/0, while client/1 gets new examples at `SHIFT_ROUND`.

    Args:
        even: share of even digits among the new examples, one half before; None = no change.
        seed: seed of the examples and the initial weights.

    """
    return _run(even, seed, RECIPE, ROUNDS, SHIFT_ROUND).seen_by(client(0))


def simulate_many_steps(even: float | None, seed: int) -> Transcript:
    """Return the same in few rounds of `MANY_STEPS`, for attacks that simulate clients."""
    return _run(even, seed, MANY_STEPS, SHORT_ROUNDS, SHORT_SHIFT_ROUND)


@cache
def _run(even: float | None, seed: int, recipe: Recipe, rounds: int, since: int) -> Transcript:
    observer_rows = _rows(0.5, Seed(seed).child("own"), torch.tensor([], dtype=torch.long))
    old = _rows(0.5, Seed(seed).child("old"), observer_rows)
    new = (
        old
        if even is None
        else _rows(even, Seed(seed).child("new"), torch.cat([observer_rows, old]))
    )
    clients, start = (client(0), client(1)), dict(initial_weights(BUILD, Seed(seed)))
    messages = []
    for number in range(rounds):
        target_rows = old if number < since else new
        messages.append(Message(number, SERVER, frozenset(clients), Broadcast(start)))
        members = [ClientTask(clients[0], observer_rows), ClientTask(clients[1], target_rows)]
        updates = [
            Update(dict(one.delta), SIZE)
            for one in train_cohort(
                BUILD, start, DIGITS.train, members, recipe, seed=Seed(seed), round=number
            )
        ]
        messages += [
            Message(number, sender, frozenset({SERVER}), update)
            for sender, update in zip(clients, updates, strict=True)
        ]
        start = apply_update(start, mean_update(updates).delta)
    messages.append(Message(rounds, SERVER, frozenset(clients), Broadcast(start)))
    return Transcript(tuple(messages))


def _rows(even: float, seed: Seed, taken: Tensor) -> Tensor:
    labels = DIGITS.train.labels
    order = torch.randperm(len(labels), generator=seed.generator())
    free = order[~torch.isin(order, torch.cat([taken, UNUSED_ROWS]))]
    evens, odds = free[labels[free] % 2 == 0], free[labels[free] % 2 == 1]
    count = round(even * SIZE)
    return torch.cat([evens[:count], odds[: SIZE - count]])
