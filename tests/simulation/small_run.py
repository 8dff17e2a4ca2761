"""A small run in which forty virtual clients are trained quickly."""

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from overheard.core.compute_settings import ComputeSettings, TensorCache
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge, Prior
from overheard.core.messages import Broadcast, Message, Update, Weights
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.initialization import initial_weights
from overheard.simulation.probe import Probe, ProbeContext
from overheard.simulation.simulation import run_simulation

CLASSES = 3
FEATURES = 4
RECIPE = Recipe(rate=0.2, epochs=1, batch=8)
CLIENTS = tuple(map(client, range(3)))


def build() -> nn.Module:
    return nn.Sequential(nn.Linear(FEATURES, 5), nn.ReLU(), nn.Linear(5, CLASSES))


def blobs(per_class: int, seed: int = 7) -> Examples:
    """Return examples from one Gaussian cloud per class."""
    labels = torch.arange(per_class * CLASSES) % CLASSES
    noise = torch.randn(len(labels), FEATURES, generator=Seed(seed).generator())
    return Examples(3 * torch.eye(CLASSES, FEATURES)[labels] + noise, labels)


def broadcast(number: int) -> Weights:
    return initial_weights(build, Seed(number))


def server_view(rounds: int = 2, sizes: Sequence[int | None] = (20, 40, 30)) -> View:
    """Return the server's view of three clients, who report or hide their sizes."""
    messages = []
    for number in range(rounds):
        start = broadcast(number)
        messages.append(Message(number, SERVER, frozenset(CLIENTS), Broadcast(start)))
        for party, size in zip(CLIENTS, sizes, strict=True):
            delta = {name: torch.full_like(weight, 0.1) for name, weight in start.items()}
            messages.append(Message(number, party, frozenset({SERVER}), Update(delta, size)))
    return View(frozenset({SERVER}), tuple(messages))


def with_variates(view: View, *, updates: bool = True) -> View:
    """Return the view with a control variate in each broadcast, and in each update or none."""
    messages = []
    for message in view.messages:
        body = message.body
        if isinstance(body, Broadcast):
            body = replace(body, control=body.weights)
        elif isinstance(body, Update) and updates:
            body = replace(body, control=body.delta)
        messages.append(replace(message, body=body))
    return replace(view, messages=tuple(messages))


class CountingCache(TensorCache):
    """A cache whose entries can be counted and removed."""

    def __init__(self) -> None:
        self.entries: dict[str, Mapping[str, Tensor]] = {}
        self.saved: list[str] = []

    def load(self, key: str) -> Mapping[str, Tensor] | None:
        return self.entries.get(key)

    def save(self, key: str, tensors: Mapping[str, Tensor]) -> None:
        self.saved.append(key)
        self.entries[key] = tensors


def knowledge(
    *,
    virtual: int = 40,
    shelf: TensorCache | None = None,
    workers: int = 1,
    prior: Prior | None = None,
    auxiliary: Examples | None = None,
) -> Knowledge:
    means = ComputeSettings(
        virtual_clients=virtual, cache=shelf or CountingCache(), workers=workers
    )
    return Knowledge(
        CLASSES, build, auxiliary or blobs(20), RECIPE, None, prior or Prior(), means
    )


@dataclass(frozen=True, slots=True)
class Raw(Probe):
    """The whole update, flattened."""

    def read(self, context: ProbeContext, deltas: Sequence[Weights]) -> Tensor:
        return torch.stack([torch.cat([d.flatten() for d in one.values()]) for one in deltas])


def raw_readings(attacker: Knowledge, probe: Probe | None = None) -> Tensor:
    """Return the updates, or other readings, of the virtual clients of two rounds."""
    probe = probe or Raw()
    return run_simulation(server_view(), attacker, (0, 1), [probe]).readings[probe]


@dataclass(frozen=True, slots=True)
class KillsWorker(Probe):
    """A probe as `Raw` whose first reading kills its process.

    Args:
        mark: a file that is written before the process dies.

    """

    mark: str

    def read(self, context: ProbeContext, deltas: Sequence[Weights]) -> Tensor:
        if not Path(self.mark).exists():
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Raw().read(context, deltas)
