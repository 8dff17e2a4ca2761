"""Runs with and without a planted shift, small enough to attack within a second."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import torch
from torch import Tensor

from overheard.core.compute_settings import ComputeSettings, MemoryTensorCache
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.messages import (
    Broadcast,
    Message,
    MessageBody,
    Update,
    Weights,
    apply_update,
)
from overheard.core.parties import SERVER, Party, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.true_facts.shifts import Shifts
from overheard.core.truth import GroundTruth
from overheard.core.view import mean_update
from overheard.learning.initialization import initial_weights
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.testing.planted_runs.planted_labels import CLASSES, blobs, build

ROUNDS: Final = 13
SHIFT_ROUND: Final = 10
"""The first round with new examples."""

ROUNDS_AFTER_SHIFT = range(SHIFT_ROUND, SHIFT_ROUND + 3)
"""The rounds with new examples, from `SHIFT_ROUND` on."""

EVEN = ((20, 20, 20, 20),) * 4
SKEWED = ((64, 8, 4, 4), (4, 64, 8, 4), (4, 4, 64, 8), (8, 4, 4, 64))
"""Label counts of each client: `EVEN` before the shift, `SKEWED` after it."""

RECIPE = Recipe(rate=0.2, epochs=1, batch=1000)
"""One step on all examples, so updates do not depend on the order of the examples."""

WARM_UP_RECIPE = Recipe(rate=0.2, epochs=10, batch=8)
"""Training of the first broadcast, so that learning changes updates less than a shift does."""

COMPUTE = ComputeSettings(virtual_clients=60, cache=MemoryTensorCache(), workers=1)


@dataclass(frozen=True, eq=False)
class ShiftingRun:
    """A run of several rounds, with its ground truth and the attacker's knowledge."""

    transcript: Transcript
    truth: GroundTruth
    knowledge: Knowledge

    @property
    def targets(self) -> tuple[Party, ...]:
        """Every client."""
        return tuple(client(number) for number in range(len(EVEN)))


def simulate_shift(counts_after: Sequence[Sequence[int]] | None, seed: Seed) -> ShiftingRun:
    """Simulate four clients with `EVEN` labels, which get new examples at `SHIFT_ROUND`.

    Args:
        counts_after: label counts of each client's new examples. `EVEN` = new examples of the
            same distribution, which is no shift. None = clients keep their examples.
        seed: the seed of the examples.

    """
    clients = [client(number) for number in range(len(EVEN))]
    start = _warm_up(seed)
    messages, true_counts = list[Message](), dict[tuple[int, Party], Tensor]()
    for number in range(ROUNDS):
        is_shifted = counts_after is not None and number >= SHIFT_ROUND
        counts = EVEN if counts_after is None or number < SHIFT_ROUND else counts_after
        messages.append(Message(number, SERVER, frozenset(clients), Broadcast(start)))
        updates = [
            Update(delta, sum(client_counts))
            for delta, client_counts in zip(
                _train_deltas(start, counts, seed.child("fresh", int(is_shifted)), RECIPE),
                counts,
                strict=True,
            )
        ]
        messages += [
            Message(number, sender, frozenset({SERVER}), update)
            for sender, update in zip(clients, updates, strict=True)
        ]
        true_counts |= {
            (number, sender): torch.tensor(client_counts)
            for sender, client_counts in zip(clients, counts, strict=True)
        }
        start = apply_update(start, mean_update(updates).delta)
    messages.append(Message(ROUNDS, SERVER, frozenset(clients), Broadcast(start)))
    has_shift = counts_after not in (None, EVEN)
    shifts = Shifts(dict.fromkeys(clients, (SHIFT_ROUND,)) if has_shift else {})
    knowledge = Knowledge(
        CLASSES, build, blobs((40,) * CLASSES, Seed(99)), RECIPE, compute=COMPUTE
    )
    return ShiftingRun(
        Transcript(tuple(messages)),
        GroundTruth(true_counts, {}, facts=Facts((shifts,))),
        knowledge,
    )


def permute_classes(run: ShiftingRun, order: Tensor) -> ShiftingRun:
    """Return the run with permuted classes: new class i is old class order[i]."""

    def permute_weights(weights: Weights) -> dict[str, Tensor]:
        last = {"2.weight", "2.bias"}
        return {name: w[order] if name in last else w for name, w in weights.items()}

    def permute_body(body: MessageBody) -> MessageBody:
        if isinstance(body, Broadcast):
            return Broadcast(permute_weights(body.weights))
        assert isinstance(body, Update)
        return Update(permute_weights(body.delta), body.examples)

    auxiliary = run.knowledge.auxiliary
    assert auxiliary is not None
    counts = {place: label_counts[order] for place, label_counts in run.truth.counts.items()}
    return ShiftingRun(
        Transcript(
            tuple(replace(m, body=permute_body(m.body)) for m in run.transcript.messages)
        ),
        replace(run.truth, counts=counts),
        replace(
            run.knowledge,
            auxiliary=Examples(auxiliary.inputs, order.argsort()[auxiliary.labels]),
        ),
    )


def _warm_up(seed: Seed) -> dict[str, Tensor]:
    start = dict(initial_weights(build, Seed(3)))
    (delta,) = _train_deltas(start, ((40,) * CLASSES,), seed.child("settling"), WARM_UP_RECIPE)
    return apply_update(start, delta)


def _train_deltas(
    start: Weights, counts: Sequence[Sequence[int]], seed: Seed, recipe: Recipe
) -> list[dict[str, Tensor]]:
    client_examples = [
        blobs(client_counts, seed.child(number)) for number, client_counts in enumerate(counts)
    ]
    pool = Examples(
        torch.cat([one.inputs for one in client_examples]),
        torch.cat([one.labels for one in client_examples]),
    )
    ends = torch.tensor([len(one) for one in client_examples]).cumsum(0).tolist()
    members = [
        ClientTask(f"{number}", torch.arange(end - len(one), end))
        for number, (end, one) in enumerate(zip(ends, client_examples, strict=True))
    ]
    trained = train_cohort(build, start, pool, members, recipe, seed=seed, round=0)
    return [dict(one.delta) for one in trained]
