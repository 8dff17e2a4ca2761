"""Small networks that tell label shares, several of a kind trained side by side."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from overheard.core.seeds import Seed
from overheard.learning.threads import one_thread

SURPRISE = 0.1
"""Weight of the cross-entropy beside the L1 distance: L1 is what counts, and its slope alone
starts too flat."""

WARMING = 0.2
"""Part of the steps in which the rate rises to its full height; then it falls as a cosine."""

NAME_NUMBERS = 4
"""Learned numbers by which a class is known, for what holds of that class only."""


@dataclass(frozen=True, slots=True)
class NetworkTraining:
    """How such networks are trained: by AdamW on batches drawn with replacement.

    Args:
        steps: how many.
        batch: clients a step.
        rate: the largest learning rate.
        weight_decay: of AdamW.

    """

    steps: int
    batch: int = 64
    rate: float = 3e-3
    weight_decay: float = 1e-2


class SideBySide(nn.Module, ABC):
    """Networks of one shape, each with its own weights and its own inputs."""

    @abstractmethod
    def forward(
        self, inputs: Float[Tensor, "networks clients ..."]
    ) -> Float[Tensor, "networks clients classes"]:
        """The logits that each network gives its clients."""


@final
class OfTokens(SideBySide):
    """Reads each class's numbers by the same weights, beside the mean over all classes.

    But for a few learned numbers that name a class, renaming the classes renames what it tells
    (Zaheer et al. 2017, Deep Sets): so what is learned about one class serves all of them.
    """

    def __init__(
        self, networks: int, classes: int, numbers: int, width: int, dropout: float
    ) -> None:
        super().__init__()
        self._names = nn.Parameter(0.3 * torch.randn(networks, 1, classes, NAME_NUMBERS))
        self._name = Linears(networks, NAME_NUMBERS, width)
        self._first = Linears(networks, numbers, width)
        self._second = Linears(networks, width, width)
        self._second_mean = Linears(networks, width, width)
        self._third = Linears(networks, width, width)
        self._third_mean = Linears(networks, width, width)
        self._last = Linears(networks, width, 1)
        self._dropout = nn.Dropout(dropout)

    def forward(
        self, inputs: Float[Tensor, "networks clients classes numbers"]
    ) -> Float[Tensor, "networks clients classes"]:
        """One logit a class, from its token and what all tokens are on average."""
        hidden = _bent(self._first(inputs) + self._name(self._names))
        mean = self._second_mean(hidden.mean(2, keepdim=True))
        hidden = self._dropout(_bent(self._second(hidden) + mean))
        mean = self._third_mean(hidden.mean(2, keepdim=True))
        logits: Tensor = self._last(_bent(self._third(hidden) + mean))[..., 0]
        return logits


@final
class OfNumbers(SideBySide):
    """Reads plain numbers: knows nothing of classes, so it may find what sets each apart."""

    def __init__(self, networks: int, classes: int, numbers: int, width: int) -> None:
        super().__init__()
        self._first = Linears(networks, numbers, width)
        self._second = Linears(networks, width, width)
        self._last = Linears(networks, width, classes)

    def forward(
        self, inputs: Float[Tensor, "networks clients numbers"]
    ) -> Float[Tensor, "networks clients classes"]:
        """Two hidden layers."""
        logits: Tensor = self._last(_bent(self._second(_bent(self._first(inputs)))))
        return logits


@final
class Linears(nn.Module):
    """One linear layer a network, in one batched product."""

    def __init__(self, networks: int, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self._weight = nn.Parameter(torch.empty(networks, inputs, outputs))
        self._bias = nn.Parameter(torch.empty(networks, 1, outputs))
        nn.init.uniform_(self._weight, -bound, bound)
        nn.init.uniform_(self._bias, -bound, bound)

    def forward(
        self, numbers: Float[Tensor, "networks *many inputs"]
    ) -> Float[Tensor, "networks *many outputs"]:
        """Each network maps its own numbers."""
        flat = numbers.flatten(1, -2)
        mapped = torch.baddbmm(self._bias, flat, self._weight)
        return mapped.view(*numbers.shape[:-1], mapped.shape[-1])


def train_side_by_side(
    networks: SideBySide,
    inputs: Float[Tensor, "networks clients ..."],
    shares: Float[Tensor, "clients classes"],
    rows: Sequence[Int[Tensor, " _rows"]],
    training: NetworkTraining,
    seed: Seed,
) -> None:
    """Train each network on its own rows of the clients, in place, to tell their shares.

    On one thread, so that the bits do not hang on the number of cores.

    Args:
        networks: fresh ones.
        inputs: of every client, as each network has it.
        shares: the true ones.
        rows: the clients that each network may learn from.
        training: how.
        seed: of the batches; dropout draws from torch's global generator, which the caller
            seeds.

    """
    generator = seed.generator()
    optimizer = torch.optim.AdamW(
        networks.parameters(),
        lr=training.rate,
        weight_decay=training.weight_decay,
        fused=True,
    )
    place = torch.arange(len(rows))[:, None]
    networks.train()
    with one_thread():
        for step in range(training.steps):
            for group in optimizer.param_groups:
                group["lr"] = training.rate * _height(step / training.steps)
            chosen = torch.stack(
                [
                    own[torch.randint(len(own), (training.batch,), generator=generator)]
                    for own in rows
                ]
            )  # (networks, batch)
            told = networks(inputs[place, chosen]).log_softmax(2)
            true = shares[chosen]
            distance = (told.exp() - true).abs().sum(2) - SURPRISE * (true * told).sum(2)
            optimizer.zero_grad()
            torch.autograd.backward(distance.mean(1).sum())
            optimizer.step()
    networks.eval().requires_grad_(False)


def load_weights(networks: SideBySide, kept: Mapping[str, Tensor], prefix: str) -> None:
    """Give networks, in place, the weights that their `state_dict` told under a prefix."""
    own = {
        name.removeprefix(prefix): weight
        for name, weight in kept.items()
        if name.startswith(prefix)
    }
    networks.load_state_dict(own)
    networks.eval().requires_grad_(False)


def _height(way: float) -> float:
    if way < WARMING:
        return (way + 1e-3) / WARMING
    return (1 + math.cos(math.pi * (way - WARMING) / (1 - WARMING))) / 2


def _bent(numbers: Tensor) -> Tensor:
    return numbers.relu()
