"""Which known user holds as many examples as a target says, up to one factor for all."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

RATIO_SPREAD = 1.0
"""Standard deviation of what is thought of the logarithm of the factor before any is heard."""

WIDTHS = (0.005, 0.02, 0.08, 0.3, 1.0)
"""How far users may be off the common factor, as standard deviations of a logarithm; each is as
likely as the others before any is heard."""


@final
@dataclass(frozen=True, slots=True)
class SizeRatio:
    """What the sizes heard tell of the factor between private and prior sizes.

    A user u of prior size n_u is taken to send log n = log n_u + log factor + width * noise,
    noise being normal. Who holds a half of each user's records as the prior has a factor of 1
    and next to no width; nobody tells the attacker so, but the sizes heard do.

    Args:
        prior_sizes: log(1 + prior examples) of each known user.
        factors: logarithms of factors, one a guess.
        widths: one a guess.
        likelihoods: logarithm of how likely each guess is.

    """

    prior_sizes: Float[Tensor, " users"]
    factors: Float[Tensor, " guesses"]
    widths: Float[Tensor, " guesses"]
    likelihoods: Float[Tensor, " guesses"]

    def evidence(self, size: float) -> Float[Tensor, " users"]:
        """For each user, log of how much likelier the size is theirs than any known user's."""
        each = (self._densities(size) + self.likelihoods).logsumexp(1)
        return each - each.logsumexp(0) + log(len(each))

    def _densities(self, size: float) -> Float[Tensor, "users guesses"]:
        off = (size - self.prior_sizes[:, None] - self.factors) / self.widths
        return -off.square() / 2 - self.widths.log()


def learn_size_ratio(prior_sizes: Float[Tensor, " users"], heard: Sequence[float]) -> SizeRatio:
    """Weigh every factor and width by how likely they make the sizes heard.

    Each distinct size counts once, as that of somebody known: a sender who changes its name
    tells nothing new.

    Args:
        prior_sizes: log(1 + prior examples) of each known user.
        heard: log(1 + examples) of updates, whoever sent them.

    """
    grids = [
        torch.arange(-3 * RATIO_SPREAD, 3 * RATIO_SPREAD, width, dtype=torch.float64)
        for width in WIDTHS
    ]
    factors = torch.cat(grids)
    widths = torch.cat([torch.full_like(g, w) for g, w in zip(grids, WIDTHS, strict=True)])
    # A width has as many guesses as it takes to cover the factors: a guess of it weighs less.
    before = widths.log() - (factors / RATIO_SPREAD).square() / 2
    ratio = SizeRatio(prior_sizes, factors, widths, before)
    for size in sorted(set(heard)):
        before = before + ratio._densities(size).logsumexp(0)
    return SizeRatio(prior_sizes, factors, widths, before - before.logsumexp(0))
