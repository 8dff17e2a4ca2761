"""A regression of a client's size on the lengths of its updates, with an interval."""

from dataclasses import dataclass
from math import exp
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.learning.fitting.ridge import fit_ridge
from overheard.learning.fitting.standardizer import Standardizer, fit_standardizer
from overheard.questions.label_shares.claim import SizeEstimate
from overheard.questions.label_shares.estimators.local_intervals import residual_interval

RIDGE = 1.0
"""Ridge penalty of the regression, in units of one virtual client."""


@final
@dataclass(frozen=True, slots=True)
class SizeRegression:
    """A ridge regression of the logarithm of size, with out-of-sample residuals.

    Args:
        scale: scale of the features.
        weights: weights of each half's regression; the last is the constant.
        residuals: true minus estimated logarithm, in ascending order.

    """

    scale: Standardizer
    weights: Float[Tensor, "halves numbers"]
    residuals: Float[Tensor, " clients"]

    def estimate_size(
        self, norms: Float[Tensor, "clients norms"], shares: Float[Tensor, "clients classes"]
    ) -> SizeEstimate:
        """Estimate the size of one client, with an interval of level `INTERVAL_LEVEL`."""
        features = _expand_features(self.scale.standardize(_raw_features(norms, shares)))
        estimate = float((features @ self.weights.T).mean())
        low, high = map(float, residual_interval(self.residuals))
        size = exp(estimate)
        return SizeEstimate(
            size, min(size, exp(estimate + low)), max(size, exp(estimate + high))
        )


def fit_size_regression(
    norms: Float[Tensor, "clients norms"],
    shares: Float[Tensor, "clients classes"],
    sizes: Float[Tensor, " clients"] | Int[Tensor, " clients"],
    halves: Int[Tensor, " clients"],
) -> SizeRegression:
    """Fit the regression to each half of the virtual clients; the other half gives residuals.

    The length of an update grows with the number of steps, hence with size, and with label
    imbalance (estimated `shares`).
    """
    raw = _raw_features(norms, shares)
    scale = fit_standardizer(raw)
    features, goal = _expand_features(scale.standardize(raw)), sizes.double().log()
    penalty = features.new_full((features.shape[1],), RIDGE)
    penalty[-1] = 0.0  # the constant's
    weights = torch.stack(
        [fit_ridge(features[halves == h], goal[halves == h], penalty) for h in (0, 1)]
    )
    estimates = (features @ weights.T)[torch.arange(len(goal)), 1 - halves]
    return SizeRegression(scale, weights, (goal - estimates).sort().values)


def _raw_features(norms: Tensor, shares: Tensor) -> Float[Tensor, "clients numbers"]:
    imbalance = shares.double().square().sum(1, keepdim=True).sqrt()
    return torch.cat((norms.double(), imbalance), 1)


def _expand_features(
    standard: Float[Tensor, "clients numbers"],
) -> Float[Tensor, "clients more"]:
    """Return the features, their products with label imbalance, their squares and a 1."""
    # A target may be far from all virtual clients; clipping bounds its squares.
    clipped = standard.clamp(-4, 4)
    constant = clipped.new_ones(len(clipped), 1)
    return torch.cat((clipped, clipped * clipped[:, -1:], clipped.square(), constant), 1)
