"""Optimizer steps for the synthetic examples of many clients, and the state of Adam."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, final

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.functional import softplus

from overheard.learning.distillation.synthetic import SyntheticExamples
from overheard.learning.optimizers import ADAM_BETAS, ADAM_EPSILON

DistillationOptimizer = Literal["adam", "adam_softplus", "sgd"]
"""Update rules of synthetic data.

"adam_softplus" is that of the public code of dataset distillation (Wang et al. 2018,
github.com/ssnl/dataset-distillation, `train_distilled_image.py`): Adam with a first beta of
0.5, and learning rates that are the softplus of what is optimized, so they stay positive.
"""

SOFTPLUS_FIRST_BETA = 0.5


@final
@dataclass(frozen=True, slots=True)
class StepRates:
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
    optimizer: DistillationOptimizer


@final
@dataclass(frozen=True, slots=True, eq=False)
class AdamMoments:
    """State of Adam for each client (Kingma and Ba 2015, Algorithm 1).

    Args:
        steps: number of steps taken.
        mean: running mean of the gradients.
        square: running mean of the squared gradients.

    """

    steps: Int[Tensor, " clients"]
    mean: SyntheticExamples
    square: SyntheticExamples

    def select(self, clients: Int[Tensor, " some"]) -> "AdamMoments":
        """Return the state of some clients."""
        return AdamMoments(
            self.steps[clients],
            self.mean.map(lambda one: one[clients]),
            self.square.map(lambda one: one[clients]),
        )

    def to_device(self, device: torch.device | str) -> "AdamMoments":
        """Copy the state to a device."""
        return AdamMoments(
            self.steps.to(device),
            self.mean.map(lambda one: one.to(device)),
            self.square.map(lambda one: one.to(device)),
        )

    def replace_clients(
        self, clients: Int[Tensor, " some"], new: "AdamMoments"
    ) -> "AdamMoments":
        """Return a copy with the state of these clients replaced."""
        return AdamMoments(
            self.steps.index_copy(0, clients, new.steps),
            _replace_rows(self.mean, clients, new.mean),
            _replace_rows(self.square, clients, new.square),
        )


def zero_moments(like: SyntheticExamples, clients: int) -> AdamMoments:
    """Return the initial state for sets like this one."""
    zeros = like.map(lambda one: one.new_zeros(clients, *one.shape))
    return AdamMoments(torch.zeros(clients, dtype=torch.int64), zeros, zeros)


def take_step(
    examples: SyntheticExamples,
    gradients: SyntheticExamples,
    moments: AdamMoments,
    step_rates: StepRates,
    rate_scale: float,
) -> tuple[SyntheticExamples, AdamMoments]:
    """Take one step for each client, and return the new examples and state.

    Args:
        examples: examples of each client.
        gradients: gradients of its loss.
        moments: state after the steps before.
        step_rates: optimizer and rates.
        rate_scale: factor by which the rates are multiplied.

    """
    rates = (step_rates.inputs, step_rates.labels, step_rates.rates)
    if step_rates.optimizer == "sgd":
        updated = [
            tensor - rate_scale * rate * gradient
            for tensor, gradient, rate in zip(examples, gradients, rates, strict=True)
        ]
        return SyntheticExamples(*updated), moments
    if step_rates.optimizer == "adam":
        return _take_adam_step(examples, gradients, moments, rates, rate_scale, ADAM_BETAS)
    # The derivative of softplus is 1 - exp(-softplus).
    slopes = -torch.expm1(-examples.rates)
    new, moments = _take_adam_step(
        replace(examples, rates=examples.rates + slopes.log()),
        replace(gradients, rates=gradients.rates * slopes),
        moments,
        rates,
        rate_scale,
        (SOFTPLUS_FIRST_BETA, ADAM_BETAS[1]),
    )
    return replace(new, rates=softplus(new.rates)), moments


def _take_adam_step(
    examples: SyntheticExamples,
    gradients: SyntheticExamples,
    moments: AdamMoments,
    rates: Sequence[float],
    rate_scale: float,
    betas: tuple[float, float],
) -> tuple[SyntheticExamples, AdamMoments]:
    beta1, beta2 = betas
    steps = moments.steps + 1
    means, squares, updated = [], [], []
    for tensor, gradient, mean, square, rate in zip(
        examples, gradients, moments.mean, moments.square, rates, strict=True
    ):
        client_steps = steps.to(tensor).view(-1, *[1] * (tensor.ndim - 1))
        means.append(beta1 * mean + (1 - beta1) * gradient)
        squares.append(beta2 * square + (1 - beta2) * gradient.square())
        size = (squares[-1] / (1 - beta2**client_steps)).sqrt() + ADAM_EPSILON
        updated.append(
            tensor - rate_scale * rate * means[-1] / (1 - beta1**client_steps) / size
        )
    return SyntheticExamples(*updated), AdamMoments(
        steps, SyntheticExamples(*means), SyntheticExamples(*squares)
    )


def _replace_rows(
    whole: SyntheticExamples, clients: Int[Tensor, " some"], new: SyntheticExamples
) -> SyntheticExamples:
    replaced = [a.index_copy(0, clients, b) for a, b in zip(whole, new, strict=True)]
    return SyntheticExamples(*replaced)
