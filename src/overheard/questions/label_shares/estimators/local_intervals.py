"""Intervals of estimates, from the errors of similar estimates whose truth is known."""

from dataclasses import dataclass
from math import ceil, floor
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import INTERVAL_LEVEL, Interval
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.label_shares.claim import LabelShares

NEIGHBOUR_SHARE = 0.05
"""Fraction of the calibration cases that are used as neighbours."""

FEWEST_NEIGHBOURS = 60
"""With fewer cases, a 5 % quantile would be little more than the smallest."""


@final
@dataclass(frozen=True, slots=True)
class CalibrationCases:
    """Out-of-sample estimates of label shares, with the true shares, for calibration.

    Intervals follow localised conformal prediction (Lei and Wasserman 2014; Guan 2023): the
    residuals of the nearest cases give the quantiles. Nearness is measured by the estimated
    share and by the imbalance of the whole estimate. Intervals have their stated coverage for
    clients drawn like the cases; they guarantee nothing for others.

    Args:
        estimates: estimates by an estimator that was not trained on the case; each sums to 1.
        shares: true shares.

    """

    estimates: Float[Tensor, "cases classes"]
    shares: Float[Tensor, "cases classes"]

    def bounds(self, estimate: Float[Tensor, " classes"]) -> Interval:
        """Return the interval of each claimed share, with level `INTERVAL_LEVEL` each."""
        residuals = (self.shares - self.estimates).flatten()[self._nearest_cases(estimate)]
        ordered = residuals.sort(1).values  # (classes, neighbours)
        ends = [(estimate + end).clamp(0, 1).tolist() for end in residual_interval(ordered)]
        return Interval(tuple(ends[0]), tuple(ends[1]))

    def null_probability(
        self, estimate: Float[Tensor, " classes"]
    ) -> Float[Tensor, " classes"]:
        """Return how often the label was absent among similar cases; always inside (0, 1)."""
        absent = (self.shares == 0).flatten()[self._nearest_cases(estimate)].double()
        # Jeffreys' prior: an event unseen among the cases remains possible.
        return (absent.sum(1) + 0.5) / (absent.shape[1] + 1)

    def prior_claim(self) -> LabelShares:
        """Return the claim about a client without finite features: that of all cases."""
        tail = (1 - INTERVAL_LEVEL) / 2
        low, high = (self.shares.double().quantile(q, 0).tolist() for q in (tail, 1 - tail))
        return LabelShares(
            normalize_to_shares(self.shares.double().mean(0)).float(),
            bounds=Interval(tuple(low), tuple(high)),
            null_probability=(self.shares == 0).double().mean(0).float(),
        )

    def _nearest_cases(self, estimate: Float[Tensor, " classes"]) -> Tensor:
        """Find the nearest cases: indices (classes, neighbours) into cases * classes."""
        cases, new = _coordinates(self.estimates), _coordinates(estimate[None])[0]
        flat = cases.flatten(0, 1)  # (cases * classes, 2)
        deviation = flat.std(0, correction=0)
        scale = deviation.where(deviation > 0, torch.inf)
        distances = torch.cdist(new / scale, flat / scale)  # (classes, cases * classes)
        wanted = max(FEWEST_NEIGHBOURS, round(NEIGHBOUR_SHARE * len(flat)))
        return distances.topk(min(wanted, len(flat)), largest=False).indices


def residual_interval(
    ordered: Float[Tensor, "*many cases"],
) -> tuple[Float[Tensor, "*many"], Float[Tensor, "*many"]]:
    """Return the residuals that bound a new one with probability `INTERVAL_LEVEL`.

    A new residual has each rank among n known ones with equal probability. It exceeds the k-th
    smallest with probability 1 - k / (n + 1); ranks are rounded outwards. If a rank lies
    outside all cases, the smallest or largest is returned, with less coverage.

    Args:
        ordered: residuals of the cases in ascending order.

    """
    count, tail = ordered.shape[-1], (1 - INTERVAL_LEVEL) / 2
    low = max(0, floor(tail * (count + 1)) - 1)
    high = min(count - 1, ceil((1 - tail) * (count + 1)) - 1)
    return ordered[..., low], ordered[..., high]


def _coordinates(
    estimates: Float[Tensor, "cases classes"],
) -> Float[Tensor, "cases classes two"]:
    """Return each share after the arcsine transform, and the imbalance of its estimate."""
    angle = estimates.clamp(0, 1).sqrt().asin()
    imbalance = estimates.square().sum(1).sqrt()[:, None].expand_as(angle)
    return torch.stack((angle, imbalance), 2)
