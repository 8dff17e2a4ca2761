"""Optimizer steps for the synthetic examples of many clients, and the state of Adam."""

from dataclasses import dataclass
from typing import Literal, final

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.learning.descent import ADAM_FLOOR, ADAM_MEANS
from overheard.learning.distillation.synthetic import Synthetic


@final
@dataclass(frozen=True, slots=True)
class Pace:
    """Rates of a step.

    Args:
        inputs: rate for inputs.
        labels: rate for soft labels.
        rates: rate for the examples' learning rates.
        optimizer: the update rule.

    """

    inputs: float
    labels: float
    rates: float
    optimizer: Literal["adam", "sgd"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """State of Adam for each client (Kingma and Ba 2015, Algorithm 1).

    Args:
        steps: number of steps taken.
        mean: running mean of the gradients.
        square: running mean of the squared gradients.

    """

    steps: Int[Tensor, " clients"]
    mean: Synthetic
    square: Synthetic

    def of(self, members: Int[Tensor, " some"]) -> "Moments":
        """Return the state of some clients."""
        return Moments(
            self.steps[members],
            self.mean.map(lambda one: one[members]),
            self.square.map(lambda one: one[members]),
        )

    def on(self, device: torch.device | str) -> "Moments":
        """Copy the state to a device."""
        return Moments(
            self.steps.to(device),
            self.mean.map(lambda one: one.to(device)),
            self.square.map(lambda one: one.to(device)),
        )

    def with_those(self, members: Int[Tensor, " some"], theirs: "Moments") -> "Moments":
        """Return a copy with the state of these clients replaced."""
        return Moments(
            self.steps.index_copy(0, members, theirs.steps),
            _placed(self.mean, members, theirs.mean),
            _placed(self.square, members, theirs.square),
        )


def forgotten(like: Synthetic, members: int) -> Moments:
    """Return the initial state for sets like this one."""
    zeros = like.map(lambda one: one.new_zeros(members, *one.shape))
    return Moments(torch.zeros(members, dtype=torch.int64), zeros, zeros)


def step(
    examples: Synthetic, slopes: Synthetic, moments: Moments, pace: Pace, scale: float
) -> tuple[Synthetic, Moments]:
    """Take one step for each client, and return the new examples and state.

    Args:
        examples: examples of each client.
        slopes: gradients of its loss.
        moments: state after the steps before.
        pace: optimizer and rates.
        scale: factor by which the rates are multiplied.

    """
    rates = (pace.inputs, pace.labels, pace.rates)
    if pace.optimizer == "sgd":
        updated = [
            tensor - scale * rate * gradient
            for tensor, gradient, rate in zip(examples, slopes, rates, strict=True)
        ]
        return Synthetic(*updated), moments
    beta1, beta2 = ADAM_MEANS
    steps = moments.steps + 1
    means, squares, updated = [], [], []
    for tensor, gradient, mean, square, rate in zip(
        examples, slopes, moments.mean, moments.square, rates, strict=True
    ):
        client_steps = steps.to(tensor).view(-1, *[1] * (tensor.ndim - 1))
        means.append(beta1 * mean + (1 - beta1) * gradient)
        squares.append(beta2 * square + (1 - beta2) * gradient.square())
        size = (squares[-1] / (1 - beta2**client_steps)).sqrt() + ADAM_FLOOR
        updated.append(tensor - scale * rate * means[-1] / (1 - beta1**client_steps) / size)
    return Synthetic(*updated), Moments(steps, Synthetic(*means), Synthetic(*squares))


def _placed(whole: Synthetic, clients: Int[Tensor, " some"], new: Synthetic) -> Synthetic:
    replaced = [a.index_copy(0, clients, b) for a, b in zip(whole, new, strict=True)]
    return Synthetic(*replaced)
