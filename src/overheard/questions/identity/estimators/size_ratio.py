"""Likelihood of a reported size for each known user, up to one factor common to all."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

LOG_RATIO_DEVIATION = 1.0
"""Prior standard deviation of the logarithm of the ratio of private to prior size."""

LOG_SIZE_DEVIATIONS = (0.005, 0.02, 0.08, 0.3, 1.0)
"""Standard deviations of a user's log size around the common ratio; a priori equally likely."""


@final
@dataclass(frozen=True, slots=True)
class SizeRatioPosterior:
    """Posterior over the ratio between private and prior sizes, given the observed sizes.

    Model: a user u of prior size n_u sends log n = log n_u + log ratio + deviation * noise,
    with normal noise. If one half of each user's records is prior, the ratio is 1 and the
    deviation almost 0. The attacker does not know this, but can infer it from observed sizes.

    Args:
        log_prior_sizes: log(1 + prior examples) of each known user.
        log_ratios: logarithm of the ratio of each hypothesis.
        deviations: deviation of each hypothesis.
        log_weights: log-probability of each hypothesis.

    """

    log_prior_sizes: Float[Tensor, " users"]
    log_ratios: Float[Tensor, " hypotheses"]
    deviations: Float[Tensor, " hypotheses"]
    log_weights: Float[Tensor, " hypotheses"]

    def log_likelihood_ratios(self, size: float) -> Float[Tensor, " users"]:
        """Return each user's log-likelihood ratio of a size against an average known user."""
        by_user = (self._log_densities(size) + self.log_weights).logsumexp(1)
        return by_user - by_user.logsumexp(0) + log(len(by_user))

    def _log_densities(self, size: float) -> Float[Tensor, "users hypotheses"]:
        standardised = (
            size - self.log_prior_sizes[:, None] - self.log_ratios
        ) / self.deviations
        return -standardised.square() / 2 - self.deviations.log()


def fit_size_ratio(
    log_prior_sizes: Float[Tensor, " users"], log_sizes: Sequence[float]
) -> SizeRatioPosterior:
    """Weigh every ratio and deviation by the likelihood of the observed sizes.

    Each distinct size counts once, as that of a known user: a sender under a new pseudonym adds
    no information.

    Args:
        log_prior_sizes: log(1 + prior examples) of each known user.
        log_sizes: log(1 + examples) of updates of any sender.

    """
    grids = [
        torch.arange(
            -3 * LOG_RATIO_DEVIATION, 3 * LOG_RATIO_DEVIATION, width, dtype=torch.float64
        )
        for width in LOG_SIZE_DEVIATIONS
    ]
    factors = torch.cat(grids)
    widths = torch.cat(
        [
            torch.full_like(grid, width)
            for grid, width in zip(grids, LOG_SIZE_DEVIATIONS, strict=True)
        ]
    )
    # A small deviation needs a finer grid of ratios, so each of its hypotheses weighs less.
    log_weights = widths.log() - (factors / LOG_RATIO_DEVIATION).square() / 2
    ratio = SizeRatioPosterior(log_prior_sizes, factors, widths, log_weights)
    for size in sorted(set(log_sizes)):
        log_weights = log_weights + ratio._log_densities(size).logsumexp(0)
    return SizeRatioPosterior(
        log_prior_sizes, factors, widths, log_weights - log_weights.logsumexp(0)
    )
