"""Ensembles of small networks that predict label shares and are trained at once."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim.adamw import adamw

from overheard.core.seeds import Seed
from overheard.learning.optimizers import ADAM_BETAS, ADAM_EPSILON
from overheard.learning.threads import one_thread

CROSS_ENTROPY_WEIGHT = 0.1
"""Weight of the cross-entropy added to the L1 loss, whose gradients are too small at first."""

WARMUP_SHARE = 0.2
"""Share of the steps in which the rate rises linearly; then it falls as a cosine."""

CLASS_EMBEDDING_SIZE = 4
"""Size of the learned embedding of a class, for patterns that are specific to a class."""


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
        self, inputs: Float[Tensor, "networks clients ..."]
    ) -> Float[Tensor, "networks clients classes"]:
        """Return the logits of each network for its clients."""


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
        self._dropout = nn.Dropout(dropout)

    def forward(
        self, inputs: Float[Tensor, "networks clients classes numbers"]
    ) -> Float[Tensor, "networks clients classes"]:
        """Compute one logit per class from its numbers and the mean over classes."""
        hidden = _relu(self._first(inputs) + self._name(self._names))
        mean = self._second_mean(hidden.mean(2, keepdim=True))
        hidden = self._dropout(_relu(self._second(hidden) + mean))
        mean = self._third_mean(hidden.mean(2, keepdim=True))
        logits: Tensor = self._last(_relu(self._third(hidden) + mean))[..., 0]
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
        self, inputs: Float[Tensor, "networks clients numbers"]
    ) -> Float[Tensor, "networks clients classes"]:
        """Apply two hidden layers."""
        logits: Tensor = self._last(_relu(self._second(_relu(self._first(inputs)))))
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
        seed: seed of the batches; dropout draws from torch's global generator, which the caller
            seeds.

    """
    generator = seed.generator()
    optimizer = _FusedAdamW(networks, training.weight_decay)
    network = torch.arange(len(rows))[:, None]
    networks.train()
    with one_thread():
        for step in range(training.steps):
            batch = torch.stack(
                [
                    clients[torch.randint(len(clients), (training.batch,), generator=generator)]
                    for clients in rows
                ]
            )  # (networks, batch)
            log_shares = networks(inputs[network, batch]).log_softmax(2)
            true = shares[batch]
            distance = (log_shares.exp() - true).abs().sum(2)
            loss = distance - CROSS_ENTROPY_WEIGHT * (true * log_shares).sum(2)
            rate = training.rate * _rate_factor(step / training.steps)
            optimizer.step(loss.mean(1).sum(), rate)
    networks.eval().requires_grad_(False)


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


@final
class _FusedAdamW:
    """AdamW, bit for bit as `torch.optim.AdamW` with `fused` takes its steps.

    Making an optimizer of torch imports its compiler, which takes two seconds and is not used.
    """

    def __init__(self, networks: nn.Module, weight_decay: float) -> None:
        self._parameters: list[Tensor] = list(networks.parameters())
        self._weight_decay = weight_decay
        self._means = [torch.zeros_like(one) for one in self._parameters]
        self._squares = [torch.zeros_like(one) for one in self._parameters]
        self._steps = [torch.zeros(()) for _ in self._parameters]

    def step(self, loss: Float[Tensor, ""], rate: float) -> None:
        """Change the parameters in place along the gradient of the loss."""
        gradients = torch.autograd.grad(loss, self._parameters)
        with torch.no_grad():
            adamw(
                self._parameters,
                list(gradients),
                self._means,
                self._squares,
                [],
                self._steps,
                fused=True,
                amsgrad=False,
                beta1=ADAM_BETAS[0],
                beta2=ADAM_BETAS[1],
                lr=rate,
                weight_decay=self._weight_decay,
                eps=ADAM_EPSILON,
                maximize=False,
            )


def _rate_factor(progress: float) -> float:
    if progress < WARMUP_SHARE:
        return (progress + 1e-3) / WARMUP_SHARE
    return (1 + math.cos(math.pi * (progress - WARMUP_SHARE) / (1 - WARMUP_SHARE))) / 2


def _relu(numbers: Tensor) -> Tensor:
    return numbers.relu()
