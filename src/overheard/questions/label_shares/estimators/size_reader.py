"""Reads a client's size off the lengths of its updates, with an interval."""

from dataclasses import dataclass
from math import exp
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.learning.fitting.ridge import fit_ridge
from overheard.learning.fitting.standard import Standard, standard_of
from overheard.questions.label_shares.claim import SizeEstimate
from overheard.questions.label_shares.estimators.conformal import ends_of

RIDGE = 1.0
"""Of the regression, in units of one virtual client."""


@final
@dataclass(frozen=True, slots=True)
class SizeReader:
    """A ridge regression of the logarithm of a size, with residuals on clients it had not met.

    Args:
        scale: of what is regressed on.
        weights: of each half's regression; the last is the constant.
        residuals: true minus estimated logarithm, in order.

    """

    scale: Standard
    weights: Float[Tensor, "halves numbers"]
    residuals: Float[Tensor, " clients"]

    def read(
        self, norms: Float[Tensor, "clients norms"], shares: Float[Tensor, "clients classes"]
    ) -> SizeEstimate:
        """The size of one client, with its interval of `core.claims.INTERVAL_LEVEL`."""
        numbers = _numbers(self.scale.of(_raw(norms, shares)))
        estimate = float((numbers @ self.weights.T).mean())
        low, high = map(float, ends_of(self.residuals))
        middle = exp(estimate)
        return SizeEstimate(
            middle, min(middle, exp(estimate + low)), max(middle, exp(estimate + high))
        )


def size_reader(
    norms: Float[Tensor, "clients norms"],
    shares: Float[Tensor, "clients classes"],
    sizes: Float[Tensor, " clients"] | Int[Tensor, " clients"],
    halves: Int[Tensor, " clients"],
) -> SizeReader:
    """Learn to read sizes from virtual clients: from each half, judged by the other.

    The length of an update grows with the number of steps, so with the size, and with how
    uneven the labels are (`shares` as estimated); what makes it so is known by example only.
    """
    raw = _raw(norms, shares)
    scale = standard_of(raw)
    numbers, goal = _numbers(scale.of(raw)), sizes.double().log()
    penalty = numbers.new_full((numbers.shape[1],), RIDGE)
    penalty[-1] = 0.0  # the constant's
    weights = torch.stack(
        [fit_ridge(numbers[halves == h], goal[halves == h], penalty) for h in (0, 1)]
    )
    told = (numbers @ weights.T)[torch.arange(len(goal)), 1 - halves]
    return SizeReader(scale, weights, (goal - told).sort().values)


def _raw(norms: Tensor, shares: Tensor) -> Float[Tensor, "clients numbers"]:
    uneven = shares.double().square().sum(1, keepdim=True).sqrt()
    return torch.cat((norms.double(), uneven), 1)


def _numbers(standard: Float[Tensor, "clients numbers"]) -> Float[Tensor, "clients more"]:
    """The numbers, what each does to the evenness of the labels, their squares and a 1."""
    # A target may lie far off every virtual client; a square must not run away with it.
    near = standard.clamp(-4, 4)
    return torch.cat((near, near * near[:, -1:], near.square(), near.new_ones(len(near), 1)), 1)
