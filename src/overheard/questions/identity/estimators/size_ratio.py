"""Likelihood of a reported size for each known user, up to one factor common to all."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

RATIO_SPREAD = 1.0
"""Prior standard deviation of the logarithm of the ratio of private to prior size."""

WIDTHS = (0.005, 0.02, 0.08, 0.3, 1.0)
"""Standard deviations of a user's log size around the common ratio; a priori equally likely."""


@final
@dataclass(frozen=True, slots=True)
class SizeRatio:
    """Posterior over the ratio between private and prior sizes, given the observed sizes.

    Model: a user u of prior size n_u sends log n = log n_u + log ratio + deviation * noise,
    with normal noise. If the prior is one half of each user's records, the ratio is 1 and the
    deviation almost 0. The attacker does not know this, but can infer it from observed sizes.

    Args:
        prior_sizes: log(1 + prior examples) of each known user.
        factors: logarithm of the ratio of each hypothesis.
        widths: deviation of each hypothesis.
        likelihoods: log-probability of each hypothesis.

    """

    prior_sizes: Float[Tensor, " users"]
    factors: Float[Tensor, " hypotheses"]
    widths: Float[Tensor, " hypotheses"]
    likelihoods: Float[Tensor, " hypotheses"]

    def evidence(self, size: float) -> Float[Tensor, " users"]:
        """Return each user's log-likelihood ratio of a size against an average known user."""
        by_user = (self._densities(size) + self.likelihoods).logsumexp(1)
        return by_user - by_user.logsumexp(0) + log(len(by_user))

    def _densities(self, size: float) -> Float[Tensor, "users hypotheses"]:
        standardised = (size - self.prior_sizes[:, None] - self.factors) / self.widths
        return -standardised.square() / 2 - self.widths.log()


def learn_size_ratio(prior_sizes: Float[Tensor, " users"], heard: Sequence[float]) -> SizeRatio:
    """Weigh every ratio and deviation by the likelihood of the observed sizes.

    Each distinct size counts once, as that of a known user: a sender under a new pseudonym adds
    no information.

    Args:
        prior_sizes: log(1 + prior examples) of each known user.
        heard: log(1 + examples) of updates of any sender.

    """
    grids = [
        torch.arange(-3 * RATIO_SPREAD, 3 * RATIO_SPREAD, width, dtype=torch.float64)
        for width in WIDTHS
    ]
    factors = torch.cat(grids)
    widths = torch.cat(
        [torch.full_like(grid, width) for grid, width in zip(grids, WIDTHS, strict=True)]
    )
    # A small deviation needs a finer grid of ratios, so each of its hypotheses weighs less.
    log_weights = widths.log() - (factors / RATIO_SPREAD).square() / 2
    ratio = SizeRatio(prior_sizes, factors, widths, log_weights)
    for size in sorted(set(heard)):
        log_weights = log_weights + ratio._densities(size).logsumexp(0)
    return SizeRatio(prior_sizes, factors, widths, log_weights - log_weights.logsumexp(0))
