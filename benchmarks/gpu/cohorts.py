"""The cohorts whose training `make gpu-check` measures."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, final

import torch
from torch import Tensor, nn

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.batches import epoch_order
from overheard.learning.initialization import initial_weights
from overheard.learning.model import Model
from overheard.learning.models.conv_net import ConvNet
from overheard.learning.models.decaf_conv2 import DecafConv2
from overheard.learning.models.lstm import Lstm
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.resnet18 import ResNet18
from overheard.learning.models.shift_census import ShiftCensus
from overheard.learning.models.text_bag import TextBag
from overheard.learning.models.transformer import Transformer
from overheard.learning.train import Engine, train_cohort
from overheard.learning.training_job import ClientResult, ClientTask

SEED = Seed(0)
TEN = tuple("0123456789")
GREY, COLOUR = Task((1, 28, 28), TEN), Task((3, 32, 32), TEN)
CENSUS = Task((14,), ("low", "high"))
TEXTS = Task((40,), ("world", "sports", "business", "science"), vocabulary=20_000)
WINDOWS = Task((10,), tuple(str(word) for word in range(5000)), vocabulary=5000)


@dataclass(frozen=True, slots=True)
class Cohort:
    """Clients of equal size that train one network on random examples.

    Args:
        build: builds the network.
        start: its initial weights.
        pool: examples of all clients.
        clients: the clients.
        recipe: how each trains.

    """

    build: BuildModel
    start: Weights
    pool: Examples
    clients: tuple[ClientTask, ...]
    recipe: Recipe

    def first(self, clients: int, examples: int | None = None) -> "Cohort":
        """Return the cohort of the first clients, with their first examples."""
        chosen = tuple(replace(one, rows=one.rows[:examples]) for one in self.clients[:clients])
        return replace(self, clients=chosen)

    def train(
        self, device: str, engine: Engine = "auto", precision: str = "float32"
    ) -> list[ClientResult]:
        """Train all clients, and return their results."""
        return list(
            train_cohort(
                self.build,
                self.start,
                self.pool,
                self.clients,
                replace(self.recipe, precision=precision),
                seed=SEED,
                round=0,
                engine=engine,
                workers=1,
                device=device,
            )
        )

    def batches(self, client: int) -> list[Tensor]:
        """Return the rows of the pool in each step of a client."""
        one, recipe, found = self.clients[client], self.recipe, list[Tensor]()
        for epoch in range(recipe.epochs):
            order = epoch_order(SEED, 0, one.name, epoch, len(one.rows))
            found += torch.split(one.rows[order], recipe.batch)
        return found


def _images(task: Task, count: int) -> Examples:
    generator = SEED.child("images").generator()
    return Examples(
        torch.randn(count, *task.shape, generator=generator),
        torch.randint(0, task.classes, (count,), generator=generator),
    )


def _texts(task: Task, count: int) -> Examples:
    generator = SEED.child("tokens").generator()
    return Examples(
        torch.randint(1, task.vocabulary or 2, (count, *task.shape), generator=generator),
        torch.randint(0, task.classes, (count,), generator=generator),
    )


def _cohort(
    model: Model, task: Task, clients: int, examples: int, pool: int, recipe: Recipe
) -> Cohort:
    made = _texts(task, pool) if task.vocabulary else _images(task, pool)
    members = tuple(
        ClientTask(
            f"client/{number}",
            torch.randint(pool, (examples,), generator=SEED.child("rows", number).generator()),
        )
        for number in range(clients)
    )
    build = partial(model.build, task)
    return Cohort(build, initial_weights(build, SEED), made, members, recipe)


@final
@dataclass(frozen=True, slots=True)
class _BatchNorms(Model):
    """Three convolutions with a batch norm, which cannot be stacked."""

    name: ClassVar[str] = "batch_norms"
    source: ClassVar[str] = "Overheard"

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights."""
        channels, side, layers = task.shape[0], task.shape[1], list[nn.Module]()
        for width in (32, 64, 64):
            layers += [
                nn.Conv2d(channels, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(),
                nn.MaxPool2d(2),
            ]
            channels, side = width, side // 2
        return nn.Sequential(
            *layers, nn.Flatten(), nn.Linear(channels * side * side, task.outputs)
        )


def _sgd(rate: float, batch: int, epochs: int = 1) -> Recipe:
    return Recipe(rate=rate, epochs=epochs, batch=batch)


COHORTS: dict[str, Callable[[], Cohort]] = {
    "conv_net 1x28x28": lambda: _cohort(ConvNet(), GREY, 300, 250, 1000, _sgd(0.01, 32, 3)),
    "conv_net 3x32x32": lambda: _cohort(ConvNet(), COLOUR, 300, 250, 1000, _sgd(0.01, 32, 3)),
    "text_bag": lambda: _cohort(TextBag(), TEXTS, 100, 600, 5000, _sgd(0.05, 64)),
    "lstm": lambda: _cohort(Lstm(), WINDOWS, 30, 600, 5000, _sgd(0.05, 32)),
    "transformer, LoRA": lambda: _cohort(
        Transformer(rank=8), TEXTS, 10, 128, 1000, _sgd(0.05, 32)
    ),
    "resnet18": lambda: _cohort(ResNet18(), COLOUR, 64, 64, 1000, _sgd(0.01, 64)),
    "batch norms": lambda: _cohort(_BatchNorms(), COLOUR, 64, 250, 1000, _sgd(0.01, 32, 3)),
    "decaf_conv2": lambda: _cohort(DecafConv2(), GREY, 100, 600, 2400, _sgd(0.05, 64)),
    "mlp": lambda: _cohort(Mlp(hidden=(64,)), GREY, 100, 600, 2400, _sgd(0.05, 32)),
    "shift_census": lambda: _cohort(ShiftCensus(), CENSUS, 100, 600, 20_000, _sgd(0.05, 64)),
}
"""By name: 300 virtual clients, or a round of a federation."""


def conv_net_operations(task: Task) -> int:
    """Return the operations of a forward and a backward pass of one example of `conv_net`.

    A multiplication and an addition are two. The first layer has no gradient of its inputs.
    """
    channels, side, total = task.shape[0], task.shape[1], 0
    for depth in range(3):
        forward = side * side * 9 * channels * 128 * 2
        total += forward * (3 if depth else 2)
        channels, side = 128, side // 2
    return total + 3 * 128 * side * side * task.classes * 2
