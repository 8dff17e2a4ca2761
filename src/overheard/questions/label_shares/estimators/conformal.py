"""Intervals around estimates, from how far off like ones were where the truth is known."""

import math
from dataclasses import dataclass
from math import ceil, floor
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import INTERVAL_LEVEL, Interval
from overheard.learning.simplex import normalised
from overheard.questions.label_shares.claim import LabelShares

NEIGHBOURS = 0.05
"""Part of all known cases that counts as like the one at hand."""

FEWEST_NEIGHBOURS = 60
"""A 5 % quantile of fewer cases would be little more than their smallest."""

LEAST_VARIANCE = 0.5
"""Of the mean of two, beside that of one: what independent errors would leave."""

TINY = 1e-12


@final
@dataclass(frozen=True, slots=True)
class Cases:
    """Estimates of label shares whose truth is known, none made by who had seen the case.

    Intervals are those of conformal prediction made local: the residuals of the nearest cases,
    by estimated share and by how uneven the whole estimate is, give the quantiles (Lei and
    Wasserman 2014; Guan 2023). They hold as often as they say for clients drawn as the cases
    were, and promise nothing about others.

    A case was estimated by one of a pair of estimators, a new client is by the mean of both,
    which errs less: by 1 - D / 4V in variance, where D is the mean square by which the two
    differ and V that of the residuals. Intervals shrink by the root of it.

    Args:
        estimates: of one estimator each, that had not seen the case; each sums to 1.
        shares: the truth.

    """

    estimates: Float[Tensor, "cases classes"]
    shares: Float[Tensor, "cases classes"]

    def bounds(
        self, estimate: Float[Tensor, " classes"], pair: Float[Tensor, "two classes"]
    ) -> Interval:
        """Where each true share lies, with a chance of `INTERVAL_LEVEL` each.

        Args:
            estimate: as it is told; at least as good as the mean of the pair.
            pair: the estimates of the two.

        """
        residuals = (self.shares - self.estimates).flatten()[self._alike(estimate)]
        apart = float((pair[0] - pair[1]).square().mean())
        variance = max(float(residuals.square().mean()), TINY)
        narrower = math.sqrt(max(1 - apart / (4 * variance), LEAST_VARIANCE))
        ordered = residuals.sort(1).values * narrower  # (classes, neighbours)
        ends = [(estimate + end).clamp(0, 1).tolist() for end in ends_of(ordered)]
        return Interval(tuple(ends[0]), tuple(ends[1]))

    def null_probability(
        self, estimate: Float[Tensor, " classes"]
    ) -> Float[Tensor, " classes"]:
        """How often the label was absent among like cases; never quite 0 or 1."""
        absent = (self.shares == 0).flatten()[self._alike(estimate)].double()
        # Jeffreys' prior: what was not seen among so many cases may happen yet.
        return (absent.sum(1) + 0.5) / (absent.shape[1] + 1)

    def unheard(self) -> LabelShares:
        """What can be claimed of a client that could not be read: what all cases are like."""
        tail = (1 - INTERVAL_LEVEL) / 2
        low, high = (self.shares.double().quantile(q, 0).tolist() for q in (tail, 1 - tail))
        return LabelShares(
            normalised(self.shares.double().mean(0)).float(),
            bounds=Interval(tuple(low), tuple(high)),
            null_probability=(self.shares == 0).double().mean(0).float(),
        )

    def _alike(self, estimate: Float[Tensor, " classes"]) -> Tensor:
        """Places (classes, neighbours) in the flattened table of the cases nearest to each."""
        known, own = _coordinates(self.estimates), _coordinates(estimate[None])[0]
        flat = known.flatten(0, 1)  # (cases * classes, 2)
        spread = flat.std(0, correction=0)
        scale = spread.where(spread > 0, torch.inf)
        distances = torch.cdist(own / scale, flat / scale)  # (classes, cases * classes)
        wanted = max(FEWEST_NEIGHBOURS, round(NEIGHBOURS * len(flat)))
        return distances.topk(min(wanted, len(flat)), largest=False).indices


def ends_of(
    ordered: Float[Tensor, "*many cases"],
) -> tuple[Float[Tensor, "*many"], Float[Tensor, "*many"]]:
    """The two residuals between which a new one lies with a chance of `INTERVAL_LEVEL`.

    A new one takes each place among n known ones with the same chance, so it exceeds the k-th
    smallest with a chance of 1 - k / (n + 1); ranks are rounded outwards. Where that would be
    beyond all cases, the smallest and the largest are given, which promise less.

    Args:
        ordered: residuals of the cases, smallest first.

    """
    count, tail = ordered.shape[-1], (1 - INTERVAL_LEVEL) / 2
    low = max(0, floor(tail * (count + 1)) - 1)
    high = min(count - 1, ceil((1 - tail) * (count + 1)) - 1)
    return ordered[..., low], ordered[..., high]


def _coordinates(
    estimates: Float[Tensor, "cases classes"],
) -> Float[Tensor, "cases classes two"]:
    """The share, on the scale on which its error is even, and how uneven the estimate is."""
    angle = estimates.clamp(0, 1).sqrt().asin()
    uneven = estimates.square().sum(1).sqrt()[:, None].expand_as(angle)
    return torch.stack((angle, uneven), 2)
