"""Accuracies and losses by class and round, of virtual clients and of victims."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from _whispers.setting import AGGREGATED, SOURCES, Setting
from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights, apply_update
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.data.apportion import apportion
from overheard.learning.evaluate import logits_of_models
from overheard.learning.initialization import initial_weights
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientResult, ClientTask

CHUNK = 16
"""Clients that train at once: their batches then fit into a core's cache, which saves a
quarter of the time."""


@final
@dataclass(frozen=True, slots=True)
class Readings:
    """What the server reads of each client, virtual clients first, and the truth.

    Args:
        accuracies: accuracy on each class after each round (0..1).
        losses: mean log-probability of the true class, on the same examples.
        shares: true label shares.

    """

    accuracies: Float[Tensor, "clients rounds classes"]
    losses: Float[Tensor, "clients rounds classes"]
    shares: Float[Tensor, "clients classes"]


@final
@dataclass(frozen=True, slots=True)
class Scene:
    """What all rounds share.

    Args:
        setting: the setting.
        build: builds the network.
        train: examples of all clients.
        test: test examples.
        clients: virtual clients and victims, each with its examples.
        seed: root of all draws.

    """

    setting: Setting
    build: BuildModel
    train: Examples
    test: Examples
    clients: tuple[ClientTask, ...]
    seed: Seed


def simulate(setting: Setting, seed: Seed, folder: Path | None) -> Readings:
    """Run the federation; in each round, train and read all clients from its broadcast.

    As in the paper, virtual clients restart from each broadcast and are never aggregated.
    Each client has the same examples in all rounds. The test examples are of the published
    test part, on which nobody trains.

    Args:
        setting: the setting.
        seed: root of all draws.
        folder: the data folder.

    """
    data = SOURCES[setting.source].load(folder)
    build = partial(setting.model.build, data.task)
    pools = _shuffled_rows(data.train.labels, seed.child("pools"))
    auxiliary = [rows[: setting.auxiliary] for rows in pools]
    theirs = auxiliary if setting.pool == "shared" else [r[setting.auxiliary :] for r in pools]
    expected = setting.alpha if setting.expected is None else setting.expected
    virtual = _draw_clients(
        setting, setting.virtual, expected, auxiliary, seed.child("virtual")
    )
    victims = _draw_clients(
        setting, setting.victims, setting.alpha, theirs, seed.child("victims")
    )
    if setting.pool == "same clients":
        victims = virtual[: setting.victims]
    clients = (*virtual, *victims)
    test_rows = _shuffled_rows(data.test.labels, seed.child("test"))
    test = data.test.take(torch.cat([rows[: setting.test] for rows in test_rows]))
    scene = Scene(setting, build, data.train, test, clients, seed)
    broadcast = initial_weights(build, seed.child("start"))
    readings = []
    for number in range(setting.rounds):
        reading, broadcast = _run_round(scene, broadcast, number)
        readings.append(reading)
    accuracies, losses = torch.stack(readings, 2)  # each (clients, rounds, classes)
    counts = torch.stack([_label_counts(data.train, client) for client in clients]).double()
    return Readings(accuracies, losses, counts / counts.sum(1, keepdim=True))


def _run_round(
    scene: Scene, broadcast: Weights, number: int
) -> tuple[Float[Tensor, "kinds clients classes"], Weights]:
    """Return each client's accuracies and losses, and the next broadcast."""
    readings: list[Tensor] = []
    aggregated: list[ClientResult] = []
    first = scene.setting.virtual
    for begin in range(0, len(scene.clients), CHUNK):
        trained = list(
            train_cohort(
                scene.build,
                broadcast,
                scene.train,
                scene.clients[begin : begin + CHUNK],
                scene.setting.recipe,
                seed=scene.seed.child("training"),
                round=number,
                chunk=CHUNK,
                workers=1,
            )
        )
        models = [apply_update(broadcast, client.delta) for client in trained]
        logits = logits_of_models(scene.build, models, scene.test.inputs)
        readings += [_read(one, scene.test.labels) for one in logits]
        positions = range(begin, begin + len(trained))
        aggregated += [
            client
            for position, client in zip(positions, trained, strict=True)
            if first <= position < first + AGGREGATED
        ]
    return torch.stack(readings, 1), apply_update(broadcast, _mean_delta(aggregated))


def _mean_delta(clients: Sequence[ClientResult]) -> Weights:
    """Return the mean change of the weights, weighted by numbers of examples."""
    total = sum(len(one.client.rows) for one in clients)
    weights = [len(one.client.rows) / total for one in clients]
    return {
        name: torch.stack(
            [weight * one.delta[name] for weight, one in zip(weights, clients, strict=True)]
        ).sum(0)
        for name in clients[0].delta
    }


def _read(
    logits: Float[Tensor, "examples classes"], labels: Int[Tensor, " examples"]
) -> Float[Tensor, "kinds classes"]:
    """Return the accuracy and the mean log-probability of the truth, by class."""
    is_right = (logits.argmax(1) == labels).float()
    truths = logits.log_softmax(1).gather(1, labels.unsqueeze(1))[:, 0]
    counts = labels.bincount().float()
    return torch.stack(
        [labels.bincount(weights=values) / counts for values in (is_right, truths)]
    )


def _shuffled_rows(labels: Int[Tensor, " examples"], seed: Seed) -> list[Rows]:
    """Return the rows of each class in random order."""
    order = torch.randperm(len(labels), generator=seed.generator())
    return [order[labels[order] == label] for label in range(int(labels.max()) + 1)]


def _draw_clients(
    setting: Setting, number: int, alpha: float, pool: Sequence[Rows], seed: Seed
) -> list[ClientTask]:
    """Draw clients independently, so that two of them may share examples."""
    clients = []
    for index in range(number):
        own = seed.child("client", index)
        generator = own.numpy()
        shares = torch.from_numpy(generator.dirichlet([alpha] * len(pool)))
        smallest, largest = setting.examples
        counts = apportion(shares, int(generator.integers(smallest, largest + 1)))
        rows = [
            _draw_rows(rows, count, own.child("rows", label))
            for label, (rows, count) in enumerate(zip(pool, counts.tolist(), strict=True))
        ]
        clients.append(ClientTask(f"client {own.value}", torch.cat(rows)))
    return clients


def _draw_rows(rows: Rows, count: int, seed: Seed) -> Rows:
    """Draw rows at random, each as often as any other, give or take one."""
    order = torch.randperm(len(rows), generator=seed.generator())
    return rows[order.repeat(-(-count // len(rows)))[:count]]


def _label_counts(examples: Examples, client: ClientTask) -> Int[Tensor, " classes"]:
    return examples.take(client.rows).label_counts(int(examples.labels.max()) + 1)
