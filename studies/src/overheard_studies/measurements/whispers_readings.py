"""Accuracies and losses by class and round, of virtual clients and of victims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights, apply_update
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.data.dataset import DataSource
from overheard.data.datasets.mnist import FashionMnist, Mnist
from overheard.data.draws import apportion
from overheard.learning.evaluate import logits_of_models
from overheard.learning.initialization import initial_weights
from overheard.learning.model import Model
from overheard.learning.models.ldia_conv import LdiaConv
from overheard.learning.models.logistic import Logistic
from overheard.learning.models.mlp import Mlp
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientResult, ClientTask

SOURCES: Mapping[str, DataSource] = {
    "MNIST": Mnist(shrink=2),
    "Fashion-MNIST": FashionMnist(shrink=2),
}
"""Both data sets at 14 x 14 pixels."""

ALPHAS = (0.5, 1.0, 2.0)
"""The Dirichlet splits of the paper's Table 3."""

AGGREGATED = 10
"""Victims whose updates form the next broadcast; the others only receive it, as do those of
the paper, which are virtual clients that were set aside."""

Pool = Literal["apart", "shared", "same clients"]
"""Victims hold examples of their own, draw from the attacker's, or are the first of the very
virtual clients that train the attack."""


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """One federation, the attacker's virtual clients, and the victims.

    Args:
        source: name of the data set.
        alpha: of the Dirichlet distribution of the victims' label shares.
        network: network of the federation.
        rate: local learning rate of SGD.
        batch: examples per local step.
        epochs: local epochs.
        momentum: momentum of SGD.
        weight_decay: weight decay of SGD.
        rounds: observed rounds, from the first.
        examples: smallest and largest number of examples of a client.
        auxiliary: auxiliary examples of each class.
        test: test examples of each class; accuracies are measured on them.
        virtual: virtual clients that train the attack.
        victims: clients whose shares are inferred.
        expected: alpha of the virtual clients; None = that of the victims.
        pool: where the victims' examples come from.

    """

    source: str = "MNIST"
    alpha: float = 1.0
    network: Model = field(default_factory=lambda: Mlp((32,)))
    rate: float = 0.01
    batch: int = 128
    epochs: int = 1
    momentum: float = 0.0
    weight_decay: float = 0.0
    rounds: int = 5
    examples: tuple[int, int] = (3000, 5000)
    auxiliary: int = 2500
    test: int = 500
    virtual: int = 300
    victims: int = 60
    expected: float | None = None
    pool: Pool = "apart"

    @property
    def recipe(self) -> Recipe:
        """The local training."""
        return Recipe(
            self.rate,
            self.epochs,
            self.batch,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
        )


SMALL = Setting()
"""The base of the search: fewer virtual clients and rounds than the grid has."""

_LDIA = replace(SMALL, rate=0.001, epochs=5, momentum=0.9, weight_decay=5e-4)
"""As in the code of Gu and Bai 2023, which runs 180 to 200 rounds."""

SEARCH: Mapping[str, Setting] = {
    "base": SMALL,
    "rate 0.003": replace(SMALL, rate=0.003),
    "rate 0.03": replace(SMALL, rate=0.03),
    "rate 0.1": replace(SMALL, rate=0.1),
    "3 rounds": replace(SMALL, rounds=3),
    "10 rounds": replace(SMALL, rounds=10),
    "30 rounds": replace(SMALL, rounds=30),
    "50 rounds": replace(SMALL, rounds=50),
    "900 virtual clients": replace(SMALL, virtual=900),
    "3 local epochs": replace(SMALL, epochs=3),
    "batches of 32": replace(SMALL, batch=32),
    "batches of 512": replace(SMALL, batch=512),
    "momentum 0.9, rate 0.001": replace(SMALL, momentum=0.9, rate=0.001),
    "LDIA's recipe": _LDIA,
    "LDIA's recipe, 30 rounds": replace(_LDIA, rounds=30),
    "LDIA's recipe and network": replace(_LDIA, network=LdiaConv()),
    "logistic regression": replace(SMALL, network=Logistic()),
    "hidden layers 128 and 64": replace(SMALL, network=Mlp((128, 64))),
    "clients of 300 to 500": replace(SMALL, examples=(300, 500)),
    "clients of 4,000": replace(SMALL, examples=(4000, 4000)),
    "1,000 auxiliary a class": replace(SMALL, auxiliary=1000),
    "100 auxiliary a class": replace(SMALL, auxiliary=100),
    "20 auxiliary a class": replace(SMALL, auxiliary=20),
    "50 test examples a class": replace(SMALL, test=50),
    "virtual clients of alpha 0.5": replace(SMALL, expected=0.5),
    "virtual clients of alpha 2": replace(SMALL, expected=2.0),
    "far from published": replace(
        SMALL, network=Mlp((128, 64)), rate=0.05, rounds=3, auxiliary=1000, test=50
    ),
}
"""Changes of one factor each, the recipe of LDIA, and last the setting whose L1 is far from the
published one.

Chosen is the change with the lowest mean over both data sets of the L1 of kernel regression on
accuracies, at the tuning seed: it says what the accuracies tell, while a change of the LSTM
also says whether 300 virtual clients suffice for it."""

SEARCH_FASHION: Mapping[str, Setting] = {
    name: replace(setting, source="Fashion-MNIST") for name, setting in SEARCH.items()
}
"""The same changes on the other data set."""

BEST = replace(SMALL, rounds=10, virtual=900, victims=100)
"""The setting that the search chose, with as many virtual clients as the paper's."""

GRID: Mapping[str, Setting] = {
    f"{source} {alpha:g}": replace(BEST, source=source, alpha=alpha)
    for source in SOURCES
    for alpha in ALPHAS
}
"""The chosen setting on both data sets and all alphas."""

LONG_GRID: Mapping[str, Setting] = {
    name: replace(setting, rounds=30) for name, setting in GRID.items()
}
"""The same with three times as many rounds: the paper reads all rounds of training."""

FLOOR: Mapping[str, Setting] = {"MNIST 1": BEST}
"""The setting in which all estimators are compared."""

FAR = SEARCH["far from published"]

LEAKS: Mapping[str, Setting] = {
    "none": FAR,
    "victims draw from the attacker's examples": replace(FAR, pool="shared"),
    "so, and 50 of them a class": replace(FAR, pool="shared", auxiliary=50),
    "victims trained the attack": replace(FAR, pool="same clients"),
}
"""Ways in which a setting may tell more than it should."""


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
        accuracy: accuracy of the last global model on the same examples (0..1).

    """

    accuracies: Float[Tensor, "clients rounds classes"]
    losses: Float[Tensor, "clients rounds classes"]
    shares: Float[Tensor, "clients classes"]
    accuracy: float


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
    build = partial(setting.network.build, data.task)
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
    (logits,) = logits_of_models(build, [broadcast], test.inputs)
    accuracy = float((logits.argmax(1) == test.labels).double().mean())
    return Readings(accuracies, losses, counts / counts.sum(1, keepdim=True), accuracy)


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
