"""Ensembles of small networks that predict label shares and are trained at once."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.optim.adamw import adamw

from overheard.core.seeds import Seed
from overheard.learning.engines.reused_memory import ReusedMemory
from overheard.learning.optimizers import ADAM_BETAS, ADAM_EPSILON
from overheard.learning.threads import one_thread

CROSS_ENTROPY_WEIGHT = 0.1
"""Weight of the cross-entropy added to the L1 loss, whose gradients are too small at first."""

WARMUP_SHARE = 0.2
"""Share of the steps in which the rate rises linearly; then it falls as a cosine."""

CLASS_EMBEDDING_SIZE = 4
"""Size of the learned embedding of a class, for patterns that are specific to a class."""

DRAWS_PER_WORD = 4
"""Draws of dropout from a random word of 64 bits."""

LogitSlopes = Callable[[Tensor], Tensor]
"""Returns the gradient of a loss at logits (networks, clients, classes)."""


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
        """Return the logits of each network for its clients, without dropout."""

    @abstractmethod
    def gradients(
        self,
        inputs: Float[Tensor, "networks clients ..."],
        logit_slopes: LogitSlopes,
        memory: ReusedMemory,
        noise: np.random.Generator,
    ) -> list[Tensor]:
        """Return the gradient of a loss at all parameters, in their order.

        It is written by hand, as autograd takes new memory for each result.

        Args:
            inputs: a batch for each network.
            logit_slopes: returns the gradient of the loss at the logits.
            memory: where results lie; the next call overwrites them.
            noise: draws dropout.

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
        self, inputs: Float[Tensor, "networks clients classes numbers"]
    ) -> Float[Tensor, "networks clients classes"]:
        """Compute one logit per class from its numbers and the mean over classes."""
        hidden = (self._first(inputs) + self._name(self._names)).relu()
        mean = self._second_mean(hidden.mean(2, keepdim=True))
        hidden = (self._second(hidden) + mean).relu()
        mean = self._third_mean(hidden.mean(2, keepdim=True))
        logits: Tensor = self._last((self._third(hidden) + mean).relu())[..., 0]
        return logits

    def gradients(
        self,
        inputs: Float[Tensor, "networks clients classes numbers"],
        logit_slopes: LogitSlopes,
        memory: ReusedMemory,
        noise: np.random.Generator,
    ) -> list[Tensor]:
        """Return the gradient of a loss with dropout."""
        name = self._name(self._names)
        first = self._first.apply_layer(inputs, memory, "first").add_(name).relu_()
        second, first_mean = self._with_mean(
            self._second, self._second_mean, first, memory, "second"
        )
        second.mul_(dropout_factors(second, self._dropout, noise))
        third, second_mean = self._with_mean(
            self._third, self._third_mean, second, memory, "third"
        )
        slopes = logit_slopes(self._last.apply_layer(third, memory, "logits")[..., 0])[
            ..., None
        ]
        of_last = self._last.parameter_gradients(third, slopes)
        slopes = self._last.input_slopes(slopes, memory, "third slopes")
        slopes = _relu_slopes(slopes, third)
        of_third, slopes = self._mean_gradients(
            self._third,
            self._third_mean,
            slopes,
            (second, second_mean),
            memory,
            "second slopes",
        )
        # Where dropout took a number, the number is 0 and so its slope is.
        slopes = _relu_slopes(slopes, second).div_(1 - self._dropout)
        of_second, slopes = self._mean_gradients(
            self._second, self._second_mean, slopes, (first, first_mean), memory, "first slopes"
        )
        slopes = _relu_slopes(slopes, first)
        of_first = self._first.parameter_gradients(inputs, slopes)
        name_slopes = slopes.sum(1, keepdim=True)  # (networks, 1, classes, width)
        of_name = self._name.parameter_gradients(self._names, name_slopes)
        names = self._name.input_slopes(name_slopes, memory, "names")
        return [names, *of_name, *of_first, *of_second, *of_third, *of_last]

    @staticmethod
    def _with_mean(
        layer: "EnsembleLinear",
        mean_layer: "EnsembleLinear",
        numbers: Float[Tensor, "networks clients classes width"],
        memory: ReusedMemory,
        name: str,
    ) -> tuple[Tensor, Tensor]:
        """Return what a layer computes from each class and the mean, and the mean."""
        mean = numbers.mean(2, keepdim=True)
        added = mean_layer.apply_layer(mean, memory, f"{name} of the mean")
        return layer.apply_layer(numbers, memory, name).add_(added).relu_(), mean

    @staticmethod
    def _mean_gradients(
        layer: "EnsembleLinear",
        mean_layer: "EnsembleLinear",
        slopes: Float[Tensor, "networks clients classes width"],
        numbers_and_mean: tuple[Tensor, Tensor],
        memory: ReusedMemory,
        name: str,
    ) -> tuple[list[Tensor], Tensor]:
        """Return the gradients of both layers of `_with_mean`, and that at the numbers."""
        numbers, mean = numbers_and_mean
        mean_slopes = slopes.sum(2, keepdim=True)  # (networks, clients, 1, width)
        gradients = [
            *layer.parameter_gradients(numbers, slopes),
            *mean_layer.parameter_gradients(mean, mean_slopes),
        ]
        before = layer.input_slopes(slopes, memory, name)
        through_mean = mean_layer.input_slopes(mean_slopes, memory, f"{name} of the mean")
        return gradients, before.add_(through_mean, alpha=1 / slopes.shape[2])


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
        logits: Tensor = self._last(self._second(self._first(inputs).relu()).relu())
        return logits

    def gradients(
        self,
        inputs: Float[Tensor, "networks clients numbers"],
        logit_slopes: LogitSlopes,
        memory: ReusedMemory,
        noise: np.random.Generator,
    ) -> list[Tensor]:
        """Return the gradient of a loss."""
        first = self._first.apply_layer(inputs, memory, "first").relu_()
        second = self._second.apply_layer(first, memory, "second").relu_()
        slopes = logit_slopes(self._last.apply_layer(second, memory, "logits"))
        of_last = self._last.parameter_gradients(second, slopes)
        slopes = self._last.input_slopes(slopes, memory, "second slopes")
        slopes = _relu_slopes(slopes, second)
        of_second = self._second.parameter_gradients(first, slopes)
        slopes = self._second.input_slopes(slopes, memory, "first slopes")
        slopes = _relu_slopes(slopes, first)
        return [*self._first.parameter_gradients(inputs, slopes), *of_second, *of_last]


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

    def apply_layer(
        self, numbers: Float[Tensor, "networks *many inputs"], memory: ReusedMemory, name: str
    ) -> Float[Tensor, "networks *many outputs"]:
        """Apply the layer, with the result in the memory of this name."""
        flat = numbers.flatten(1, -2)
        networks, _, outputs = self._weight.shape
        mapped = memory.take(name, flat, networks, flat.shape[1], outputs)
        if outputs == 1:  # sums of products are five times as fast as batched ones
            torch.sum(flat * self._weight.transpose(1, 2), 2, keepdim=True, out=mapped)
            mapped.add_(self._bias)
        else:
            torch.baddbmm(self._bias, flat, self._weight, out=mapped)
        return mapped.view(*numbers.shape[:-1], outputs)

    def parameter_gradients(
        self,
        numbers: Float[Tensor, "networks *many inputs"],
        slopes: Float[Tensor, "networks *many outputs"],
    ) -> list[Tensor]:
        """Return the gradients of weight and bias, from those at the outputs."""
        flat, flat_slopes = numbers.flatten(1, -2), slopes.flatten(1, -2)
        of_weight = (
            (flat * flat_slopes).sum(1).unsqueeze(2)
            if flat_slopes.shape[2] == 1
            else torch.bmm(flat.transpose(1, 2), flat_slopes)
        )
        return [of_weight, flat_slopes.sum(1, keepdim=True)]

    def input_slopes(
        self, slopes: Float[Tensor, "networks *many outputs"], memory: ReusedMemory, name: str
    ) -> Float[Tensor, "networks *many inputs"]:
        """Return the gradient at the inputs, in the memory of this name."""
        flat = slopes.flatten(1, -2)
        networks, inputs, _ = self._weight.shape
        before = memory.take(name, flat, networks, flat.shape[1], inputs)
        product = torch.mul if flat.shape[2] == 1 else torch.bmm
        product(flat, self._weight.transpose(1, 2), out=before)
        return before.view(*slopes.shape[:-1], inputs)


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
    memory = ReusedMemory()
    optimizer = _FusedAdamW(networks, training.weight_decay)
    offsets = len(shares) * torch.arange(len(rows))[:, None]
    flat_inputs = inputs.flatten(0, 1)
    batches = memory.take("batch", inputs, len(rows) * training.batch, *flat_inputs.shape[1:])
    with one_thread(), torch.no_grad():
        for step in range(training.steps):
            batch = torch.stack(
                [
                    clients[torch.randint(len(clients), (training.batch,), generator=generator)]
                    for clients in rows
                ]
            )  # (networks, batch)
            torch.index_select(flat_inputs, 0, (batch + offsets).flatten(), out=batches)
            gradients = networks.gradients(
                batches.view(*batch.shape, *inputs.shape[2:]),
                partial(_share_loss_slopes, shares=shares[batch]),
                memory,
                noise,
            )
            optimizer.step(gradients, training.rate * _rate_factor(step / training.steps))
    networks.eval().requires_grad_(False)


def _share_loss_slopes(
    logits: Float[Tensor, "networks clients classes"],
    shares: Float[Tensor, "networks clients classes"],
) -> Float[Tensor, "networks clients classes"]:
    """Return the gradient at the logits of each network's mean loss over its clients.

    The loss of a client with shares p is |q - p|_1 + w CE(p, q), with q the softmax of the
    logits and w = `CROSS_ENTROPY_WEIGHT`.
    """
    estimates = logits.softmax(2)
    signs = (estimates - shares).sign()
    slopes = estimates * (signs - (estimates * signs).sum(2, keepdim=True))
    totals = shares.sum(2, keepdim=True)
    slopes.add_(estimates * totals - shares, alpha=CROSS_ENTROPY_WEIGHT)
    return slopes.div_(logits.shape[1])


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
    """AdamW, bit for bit as `torch.optim.AdamW(fused=True)` takes its steps.

    Making an optimizer of torch imports its compiler, which takes two seconds and is not used.
    """

    def __init__(self, networks: nn.Module, weight_decay: float) -> None:
        self._parameters: list[Tensor] = list(networks.parameters())
        self._weight_decay = weight_decay
        self._means = [torch.zeros_like(one) for one in self._parameters]
        self._squares = [torch.zeros_like(one) for one in self._parameters]
        self._steps = [torch.zeros(()) for _ in self._parameters]

    def step(self, gradients: list[Tensor], rate: float) -> None:
        """Change the parameters in place along these gradients."""
        adamw(
            self._parameters,
            gradients,
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


def _relu_slopes(slopes: Tensor, outputs: Tensor) -> Tensor:
    """Turn the gradient at the outputs of a ReLU into that at its inputs, in place."""
    torch.ops.aten.threshold_backward.grad_input(slopes, outputs, 0, grad_input=slopes)
    return slopes
