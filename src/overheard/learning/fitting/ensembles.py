"""Ensembles of small networks that predict label shares and are trained at once."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim.adamw import adamw

from overheard.core.seeds import Seed
from overheard.learning.optimizers import ADAM_BETAS, ADAM_EPSILON
from overheard.learning.threads import single_thread

CROSS_ENTROPY_WEIGHT = 0.1
"""Weight of the cross-entropy added to the L1 loss, whose gradients are too small at first."""

WARMUP_SHARE = 0.2
"""Share of the steps in which the rate rises linearly; then it falls as a cosine."""

CLASS_EMBEDDING_SIZE = 4
"""Size of the learned embedding of a class, for patterns that are specific to a class."""

DRAWS_PER_WORD = 4
"""Draws of dropout from a random word of 64 bits."""


@dataclass(frozen=True, slots=True)
class EnsembleTraining:
    """Settings of the training by AdamW on batches drawn with replacement.

    Args:
        steps: number of steps.
        batch: clients per step.
        rate: largest learning rate.
        weight_decay: weight decay of AdamW.

    """

    steps: int
    batch: int = 64
    rate: float = 3e-3
    weight_decay: float = 1e-2


class NetworkEnsemble(nn.Module, ABC):
    """Networks of one architecture, each with its own weights and inputs."""

    @abstractmethod
    def forward(
        self,
        inputs: Float[Tensor, "networks clients ..."],
        noise: np.random.Generator | None = None,
    ) -> Float[Tensor, "networks clients classes"]:
        """Return the logits of each network for its clients.

        Args:
            inputs: those of each network.
            noise: draws dropout; None = without dropout.

        """


@final
class DeepSetEnsemble(NetworkEnsemble):
    """Networks that apply the same weights to the numbers of each class and to their mean.

    Except for the learned embedding of each class, they are equivariant to permutations of the
    classes (Zaheer et al. 2017, Deep Sets). So they generalize from one class to all.
    """

    def __init__(
        self, networks: int, classes: int, numbers: int, width: int, dropout: float
    ) -> None:
        super().__init__()
        self._names = nn.Parameter(
            0.3 * torch.randn(networks, 1, classes, CLASS_EMBEDDING_SIZE)
        )
        self._name = EnsembleLinear(networks, CLASS_EMBEDDING_SIZE, width)
        self._first = EnsembleLinear(networks, numbers, width)
        self._second = EnsembleLinear(networks, width, width)
        self._second_mean = EnsembleLinear(networks, width, width)
        self._third = EnsembleLinear(networks, width, width)
        self._third_mean = EnsembleLinear(networks, width, width)
        self._last = EnsembleLinear(networks, width, 1)
        self._dropout = dropout

    def forward(
        self,
        inputs: Float[Tensor, "networks clients classes numbers"],
        noise: np.random.Generator | None = None,
    ) -> Float[Tensor, "networks clients classes"]:
        """Compute one logit per class from its numbers and the mean over classes."""
        hidden = (self._first(inputs) + self._name(self._names)).relu()
        mean = self._second_mean(hidden.mean(2, keepdim=True))
        hidden = (self._second(hidden) + mean).relu()
        if noise is not None:
            hidden = hidden * dropout_factors(hidden, self._dropout, noise)
        mean = self._third_mean(hidden.mean(2, keepdim=True))
        logits: Tensor = self._last((self._third(hidden) + mean).relu())[..., 0]
        return logits


@final
class MlpEnsemble(NetworkEnsemble):
    """Networks on plain numbers, without the symmetry between classes."""

    def __init__(self, networks: int, classes: int, numbers: int, width: int) -> None:
        super().__init__()
        self._first = EnsembleLinear(networks, numbers, width)
        self._second = EnsembleLinear(networks, width, width)
        self._last = EnsembleLinear(networks, width, classes)

    def forward(
        self,
        inputs: Float[Tensor, "networks clients numbers"],
        noise: np.random.Generator | None = None,
    ) -> Float[Tensor, "networks clients classes"]:
        """Apply two hidden layers, without dropout."""
        logits: Tensor = self._last(self._second(self._first(inputs).relu()).relu())
        return logits


@final
class EnsembleLinear(nn.Module):
    """One linear layer per network, in one batched product."""

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
        """Apply the layer of each network to its own numbers."""
        flat = numbers.flatten(1, -2)
        mapped = torch.baddbmm(self._bias, flat, self._weight)
        return mapped.view(*numbers.shape[:-1], mapped.shape[-1])


def dropout_factors(
    like: Float[Tensor, "*shape"], rate: float, noise: np.random.Generator
) -> Float[Tensor, "*shape"]:
    """Draw factors that are 0 at this rate, up to one in 65,536, and else 1 / (1 - rate).

    Each takes 16 random bits: a fifth of the time of `bernoulli_`.
    """
    words = noise.bit_generator.random_raw(-(-like.numel() // DRAWS_PER_WORD))
    bits = torch.from_numpy(words.view(np.int16)[: like.numel()]).view(like.shape)
    lowest = torch.iinfo(torch.int16).min
    kept = bits >= lowest + round(rate * 2**16)
    return kept.to(like.dtype).div_(1 - rate)


def train_ensemble(
    networks: NetworkEnsemble,
    inputs: Float[Tensor, "networks clients ..."],
    shares: Float[Tensor, "clients classes"],
    rows: Sequence[Int[Tensor, " _rows"]],
    training: EnsembleTraining,
    seed: Seed,
) -> None:
    """Train each network in place to predict the shares of its own rows of the clients.

    It trains on one thread, so that the bits do not depend on the number of cores.

    Args:
        networks: networks with fresh weights.
        inputs: inputs of every client for each network.
        shares: true label shares.
        rows: the clients on which each network is trained.
        training: settings of the training.
        seed: seed of the batches and of dropout.

    """
    generator, noise = seed.generator(), seed.child("dropout").numpy()
    parameters: list[Tensor] = list(networks.parameters())
    means, squares = ([torch.zeros_like(one) for one in parameters] for _ in range(2))
    steps = [torch.zeros(()) for _ in parameters]
    own = torch.arange(len(rows))[:, None]
    with single_thread():
        for step in range(training.steps):
            batch = torch.stack(
                [
                    clients[torch.randint(len(clients), (training.batch,), generator=generator)]
                    for clients in rows
                ]
            )  # (networks, batch)
            loss = _share_loss(networks(inputs[own, batch], noise), shares[batch])
            gradients = list(torch.autograd.grad(loss, parameters))
            # Making an optimizer of torch imports its compiler, which takes two seconds.
            with torch.no_grad():
                adamw(
                    parameters,
                    gradients,
                    means,
                    squares,
                    [],
                    steps,
                    fused=True,
                    amsgrad=False,
                    beta1=ADAM_BETAS[0],
                    beta2=ADAM_BETAS[1],
                    lr=training.rate * _rate_factor(step / training.steps),
                    weight_decay=training.weight_decay,
                    eps=ADAM_EPSILON,
                    maximize=False,
                )
    networks.eval().requires_grad_(False)


def _share_loss(
    logits: Float[Tensor, "networks clients classes"],
    shares: Float[Tensor, "networks clients classes"],
) -> Float[Tensor, ""]:
    """Return the mean loss over clients, summed over networks.

    The loss of a client with shares p is |q - p|_1 + w CE(p, q), with q the softmax of the
    logits and w = `CROSS_ENTROPY_WEIGHT`.
    """
    logarithms = logits.log_softmax(2)
    distances = (logarithms.exp() - shares).abs().sum(2)
    entropies = -(shares * logarithms).sum(2)
    return (distances + CROSS_ENTROPY_WEIGHT * entropies).mean(1).sum()


def load_ensemble_weights(
    networks: NetworkEnsemble, stored: Mapping[str, Tensor], prefix: str
) -> None:
    """Load weights in place that `state_dict` returned, stored under a prefix."""
    weights = {
        name.removeprefix(prefix): weight
        for name, weight in stored.items()
        if name.startswith(prefix)
    }
    networks.load_state_dict(weights)
    networks.eval().requires_grad_(False)


def _rate_factor(progress: float) -> float:
    if progress < WARMUP_SHARE:
        return (progress + 1e-3) / WARMUP_SHARE
    return (1 + math.cos(math.pi * (progress - WARMUP_SHARE) / (1 - WARMUP_SHARE))) / 2
