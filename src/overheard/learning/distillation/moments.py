"""Steps of many members' synthetic examples, and what Adam remembers between them."""

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
    """How far a step goes.

    Args:
        inputs: the rate for inputs.
        labels: for soft labels.
        rates: for the examples' learning rates.
        optimizer: what makes a step of a slope.

    """

    inputs: float
    labels: float
    rates: float
    optimizer: Literal["adam", "sgd"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """What Adam remembers of each member (Kingma and Ba 2015, Algorithm 1).

    Args:
        steps: that it has taken.
        mean: of the slopes.
        square: of their squares.

    """

    steps: Int[Tensor, " members"]
    mean: Synthetic
    square: Synthetic

    def of(self, members: Int[Tensor, " some"]) -> "Moments":
        """Those of some members."""
        return Moments(
            self.steps[members],
            self.mean.map(lambda one: one[members]),
            self.square.map(lambda one: one[members]),
        )

    def on(self, device: torch.device | str) -> "Moments":
        """The same where a device can compute with it."""
        return Moments(
            self.steps.to(device),
            self.mean.map(lambda one: one.to(device)),
            self.square.map(lambda one: one.to(device)),
        )

    def with_those(self, members: Int[Tensor, " some"], theirs: "Moments") -> "Moments":
        """The same, with these members' in place of what was remembered of them."""
        return Moments(
            self.steps.index_copy(0, members, theirs.steps),
            _placed(self.mean, members, theirs.mean),
            _placed(self.square, members, theirs.square),
        )


def forgotten(like: Synthetic, members: int) -> Moments:
    """Nothing is remembered yet of sets like this one."""
    none = like.map(lambda one: one.new_zeros(members, *one.shape))
    return Moments(torch.zeros(members, dtype=torch.int64), none, none)


def step(
    examples: Synthetic, slopes: Synthetic, moments: Moments, pace: Pace, scale: float
) -> tuple[Synthetic, Moments]:
    """The examples of each member after one step, and what is remembered of it.

    Args:
        examples: of each member.
        slopes: of its loss.
        moments: of the steps before.
        pace: optimiser and rates.
        scale: by what the rates are multiplied.

    """
    rates = (pace.inputs, pace.labels, pace.rates)
    if pace.optimizer == "sgd":
        moved = [
            one - scale * rate * slope
            for one, slope, rate in zip(examples, slopes, rates, strict=True)
        ]
        return Synthetic(*moved), moments
    slow, slower = ADAM_MEANS
    steps = moments.steps + 1
    means, squares, moved = [], [], []
    for one, slope, mean, square, rate in zip(
        examples, slopes, moments.mean, moments.square, rates, strict=True
    ):
        each = steps.to(one).view(-1, *[1] * (one.ndim - 1))
        means.append(slow * mean + (1 - slow) * slope)
        squares.append(slower * square + (1 - slower) * slope.square())
        size = (squares[-1] / (1 - slower**each)).sqrt() + ADAM_FLOOR
        moved.append(one - scale * rate * means[-1] / (1 - slow**each) / size)
    return Synthetic(*moved), Moments(steps, Synthetic(*means), Synthetic(*squares))


def _placed(whole: Synthetic, members: Int[Tensor, " some"], some: Synthetic) -> Synthetic:
    told = [a.index_copy(0, members, b) for a, b in zip(whole, some, strict=True)]
    return Synthetic(*told)
