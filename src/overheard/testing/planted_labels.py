"""A one-round run with planted label shares, small enough to attack within a second."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from operator import itemgetter

import torch
from torch import Tensor, nn

from overheard.core.compute_settings import ComputeSettings, MemoryTensorCache
from overheard.core.examples import Examples, concatenate_examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.messages import (
    Broadcast,
    DistilledSet,
    Message,
    MessageBody,
    Update,
    Weights,
)
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.core.transcript import Transcript
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.truth import GroundTruth
from overheard.learning.distillation.methods.flip import Flip
from overheard.learning.distillation.moments import zero_moments
from overheard.learning.distillation.synthetic import draw_noise_examples
from overheard.learning.initialization import initial_weights
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.testing.trial import PlantedRun

CLASSES = 4
FEATURES = 12
RECIPE = Recipe(rate=0.2, epochs=1, batch=8)

SKEWED = ((32, 4, 2, 2), (2, 32, 4, 2), (2, 2, 32, 4), (4, 2, 2, 32))
EVEN = ((10, 10, 10, 10),) * 4
"""Label counts of each client: unequal in `SKEWED`, equal in `EVEN`."""

COMPUTE = ComputeSettings(virtual_clients=200, cache=MemoryTensorCache(), workers=1)
"""Few virtual clients and a shared cache, so that they are trained quickly and only once."""


def build() -> nn.Module:
    """Build a network with one hidden layer."""
    return nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), nn.Linear(16, CLASSES))


def blobs(counts: Sequence[int], seed: Seed) -> Examples:
    """Draw a Gaussian cloud for each class, which a small network can separate."""
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    centres = torch.randn(CLASSES, FEATURES, generator=Seed(1).generator()) * 1.5
    noise = torch.randn(len(labels), FEATURES, generator=seed.generator())
    return Examples(centres[labels] + noise, labels)


def assemble_run(
    start: dict[str, Tensor],
    deltas: Sequence[dict[str, Tensor]],
    counts: Sequence[Sequence[int]],
    auxiliary: Examples,
    sets: Sequence[DistilledSet] = (),
) -> PlantedRun:
    """Assemble a round in which the server reads every update and distilled set, if any.

    The first distilled set is the server's.
    """
    clients = [client(number) for number in range(len(deltas))]
    messages = [Message(0, SERVER, frozenset(clients), Broadcast(start))]
    messages += [
        Message(0, party, frozenset({SERVER}), Update(delta, sum(client_counts)))
        for party, delta, client_counts in zip(clients, deltas, counts, strict=True)
    ]
    messages += [
        Message(0, party, frozenset({SERVER, *clients}), distilled)
        for party, distilled in zip((SERVER, *clients)[: len(sets)], sets, strict=True)
    ]
    truth = {
        (0, party): torch.tensor(client_counts)
        for party, client_counts in zip(clients, counts, strict=True)
    }
    knowledge = Knowledge(CLASSES, build, auxiliary, RECIPE, compute=COMPUTE)
    return PlantedRun(
        Transcript(tuple(messages)),
        GroundTruth(Facts(LabelCounts(truth))),
        knowledge,
        tuple(clients),
    )


def make_clients(
    counts: Sequence[Sequence[int]], seed_of: Callable[[int], Seed] = lambda one: Seed(10 + one)
) -> tuple[Examples, list[ClientTask]]:
    """Make one client for each of these label counts, and their pool of examples."""
    client_examples = [
        blobs(client_counts, seed_of(number)) for number, client_counts in enumerate(counts)
    ]
    ends = torch.tensor([len(one) for one in client_examples]).cumsum(0).tolist()
    members = [
        ClientTask(f"{number}", torch.arange(end - len(one), end))
        for number, (end, one) in enumerate(zip(ends, client_examples, strict=True))
    ]
    return concatenate_examples(client_examples), members


def distil_sets(
    start: dict[str, Tensor], counts: Sequence[Sequence[int]]
) -> tuple[DistilledSet, ...]:
    """Return the server's distilled set, and the set of each of these clients in a round."""
    task = Task((FEATURES,), tuple("abcd"))
    shared, method = (
        draw_noise_examples(task, 2, 0.1, Seed(6)),
        Flip(samples=2, steps=3, batch=40),
    )
    pool, members = make_clients(counts)
    done = method.build_distiller(build, start).distil(
        shared,
        pool,
        members,
        zero_moments(shared, len(members)),
        round=0,
        rate_scale=1.0,
        seed=Seed(7),
    )
    sets = [shared, *(done.examples.map(itemgetter(place)) for place in range(len(members)))]
    return tuple(
        DistilledSet(one.inputs, one.labels, one.rates, torch.ones(len(one.rates)))
        for one in sets
    )


def train_updates(
    start: dict[str, Tensor], counts: Sequence[Sequence[int]], number: int = 0
) -> list[dict[str, Tensor]]:
    """Train one client on each of these label counts in a round, all from the same model."""
    pool, members = make_clients(counts)
    trained = train_cohort(build, start, pool, members, RECIPE, seed=Seed(4), round=number)
    return [dict(one.delta) for one in trained]


def simulate_one_round(
    counts: Sequence[Sequence[int]], trained_on: Sequence[Sequence[int]] | None = None
) -> PlantedRun:
    """Simulate one round with one client for each of these label counts.

    Args:
        counts: the label counts of each client.
        trained_on: those of other clients, whose updates and distilled sets are sent in place
            of the clients' own; None = these clients'.

    """
    start, sent = dict(initial_weights(build, Seed(3))), trained_on or counts
    auxiliary = blobs((12,) * CLASSES, Seed(99))
    return assemble_run(
        start, train_updates(start, sent), counts, auxiliary, distil_sets(start, sent)
    )


@cache
def skewed_run() -> PlantedRun:
    """Return a run in which each client has mostly examples of one class."""
    return simulate_one_round(SKEWED)


@cache
def leak_free_run() -> PlantedRun:
    """Return the skewed run with updates of even clients, which do not depend on its data."""
    return simulate_one_round(SKEWED, EVEN)


def permute_classes(run: PlantedRun, order: Tensor) -> PlantedRun:
    """Return the run with permuted classes: new class i is old class order[i]."""

    def permute_weights(weights: Weights) -> dict[str, Tensor]:
        last = {"2.weight", "2.bias"}
        return {name: w[order] if name in last else w for name, w in weights.items()}

    def permute_body(body: MessageBody) -> MessageBody:
        if isinstance(body, Broadcast):
            return Broadcast(permute_weights(body.weights))
        if isinstance(body, DistilledSet):
            return replace(body, labels=body.labels[:, order])
        assert isinstance(body, Update)
        return Update(permute_weights(body.delta), body.examples)

    counts, auxiliary = run.truth.facts.need(LabelCounts).counts, run.knowledge.auxiliary
    assert auxiliary is not None
    permuted = LabelCounts({place: held[order] for place, held in counts.items()})
    messages = (replace(m, body=permute_body(m.body)) for m in run.transcript.messages)
    renamed = Examples(auxiliary.inputs, order.argsort()[auxiliary.labels])
    return PlantedRun(
        Transcript(tuple(messages)),
        run.truth.having(permuted),
        replace(run.knowledge, auxiliary=renamed),
        run.targets,
    )
