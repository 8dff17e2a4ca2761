"""Estimates of the change of label shares and of the shares after it, with intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.claims import INTERVAL_LEVEL
from overheard.learning.fitting.ridge import fit_ridge
from overheard.questions.shift.claim import GaussianEstimate
from overheard.questions.shift.estimators.change_scan import ChangeScan

DEGREE = 3
"""The degree of the polynomial from true to estimated shares."""

CURVE_POINTS = 201
"""Shares at which the polynomial is tabulated, to be inverted."""

RIDGE_PENALTY = 1e-9
"""Ridge penalty per row of the polynomial."""

MIN_ALIKE = 9
"""The fewest runs whose largest error bounds a new one at `INTERVAL_LEVEL`."""

ALIKE_SHARE = 1 / 3
"""The share of the runs with a shift that count as those in which about as many labels rise."""


@final
@dataclass(frozen=True, slots=True)
class ResponseCurve:
    """The mean estimate at each true share, from the smallest to the largest simulated one.

    Args:
        true: true shares, rising.
        estimated: the mean estimate at each; never falls.

    """

    true: Float[Tensor, " points"]
    estimated: Float[Tensor, " points"]

    def true_shares(
        self, estimates: Float[Tensor, "runs classes"]
    ) -> Float[Tensor, "runs classes"]:
        """Return the true shares to these estimates; they are 0 or more and sum to 1.

        Beyond the ends of the curve, they differ from the end by as much as the estimate does.
        """
        place = torch.searchsorted(self.estimated, estimates.contiguous())
        right = place.clamp(1, len(self.true) - 1)
        low, high = self.estimated[right - 1], self.estimated[right]
        step = (estimates - low) / (high - low).clamp(min=torch.finfo(low.dtype).eps)
        inside = torch.lerp(self.true[right - 1], self.true[right], step.clamp(0, 1))
        limited = estimates.clamp(float(self.estimated[0]), float(self.estimated[-1]))
        shares = (inside + estimates - limited).clamp(min=0)
        total = shares.sum(-1, keepdim=True)
        uniform = torch.full_like(shares, 1 / shares.shape[-1])
        return torch.where(total > 0, shares / total, uniform)


@final
@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of estimates in simulated runs.

    Args:
        covariance: their covariance.
        widening: factors on the normal intervals of sums over 1, 2, ... labels.

    """

    covariance: Float[Tensor, "classes classes"]
    widening: tuple[float, ...]

    def around(self, value: Float[Tensor, " classes"]) -> GaussianEstimate:
        """Return the estimate with these errors."""
        return GaussianEstimate(value, self.covariance, self.widening)


@final
@dataclass(frozen=True, slots=True)
class ChangeEstimator:
    """Estimates a change, with errors as in simulated federations whose target shifts.

    Args:
        scan: gives the weights of rounds.
        curve: the response of estimated shares to true ones.
        change_errors: errors of the change.
        after_errors: errors of the shares after it.

    """

    scan: ChangeScan
    curve: ResponseCurve
    change_errors: Errors
    after_errors: Errors

    def read(
        self, track: Float[Tensor, "rounds classes"], since: int
    ) -> tuple[GaussianEstimate, GaussianEstimate]:
        """Estimate the change at this round index, and the shares after it."""
        before, after = _mean_shares(self.scan, track[None].double(), [since])
        before, after = (self.curve.true_shares(one)[0] for one in (before, after))
        return (
            self.change_errors.around(after - before),
            self.after_errors.around(after),
        )


def fit_change_estimator(
    scan: ChangeScan,
    tracks: Float[Tensor, "runs rounds classes"],
    shares: Float[Tensor, "runs rounds classes"],
    rising: Bool[Tensor, "runs classes"],
    inflation: float = 1.0,
) -> ChangeEstimator:
    """Measure the errors in simulated runs, whether or not an alarm is raised.

    The estimates are means over the rounds before and after the claimed change. Their response
    to the shares from which the target draws its examples is the same for all labels, and is
    inverted (inverse calibration). Otherwise large shares of few labels are overestimated.

    The errors include the chance of the draw and a wrong round of the change. Their covariances
    are shrunk as in Ledoit and Wolf 2004. Where few labels rise, errors have longer tails: such
    a shift is often missed. So intervals are widened for each number of labels. The interval of
    the total share of the labels that rise then covers it in `INTERVAL_LEVEL` of the runs in
    which about as many rise (conformal prediction within a group, Vovk and others 2005).

    Args:
        scan: the scale of the evidence.
        tracks: the estimates of runs with and without a shift.
        shares: the shares from which the target draws.
        rising: the labels that rise in each run; none = no shift.
        inflation: factor on the variance of simulated runs.

    """
    shares, shifts = shares.double(), rising.any(1)
    since = scan.read(tracks.double(), inflation)[1][:, -1].tolist()
    before, after = _mean_shares(scan, tracks.double(), since)
    curve = _fit_curve(after, shares[:, -1])
    before, after = (curve.true_shares(one)[shifts] for one in (before, after))
    true_before, true_after = shares[shifts, 0], shares[shifts, -1]
    change_errors = (after - before) - (true_after - true_before)
    return ChangeEstimator(
        scan,
        curve,
        _measure(change_errors, rising[shifts], inflation),
        _measure(after - true_after, rising[shifts], inflation),
    )


def _mean_shares(
    scan: ChangeScan, tracks: Float[Tensor, "runs rounds classes"], since: Sequence[int]
) -> tuple[Float[Tensor, "runs classes"], Float[Tensor, "runs classes"]]:
    """Return the mean shares before the change of each run, and from it on."""
    sides = (
        torch.stack(
            [
                scan.round_weights(rounds) @ track[rounds]
                for track, place in zip(tracks, since, strict=True)
                for rounds in [slice(None, place) if is_before else slice(place, None)]
            ]
        )
        for is_before in (True, False)
    )
    before, after = sides
    return before, after


def _fit_curve(
    estimates: Float[Tensor, "runs classes"], shares: Float[Tensor, "runs classes"]
) -> ResponseCurve:
    flat = shares.flatten()
    rows = torch.stack([flat.pow(power) for power in range(DEGREE + 1)], -1)
    # The penalty only keeps the system regular if all shares are equal.
    penalty = rows.new_full((rows.shape[1],), RIDGE_PENALTY * len(rows))
    powers = fit_ridge(rows, estimates.flatten(), penalty)
    true = torch.linspace(float(flat.min()), float(flat.max()), CURVE_POINTS).double()
    response = sum(weight * true.pow(power) for power, weight in enumerate(powers))
    assert isinstance(response, Tensor)
    return ResponseCurve(true, response.cummax(0).values)


def _measure(
    errors: Float[Tensor, "runs classes"],
    rising: Bool[Tensor, "runs classes"],
    inflation: float,
) -> Errors:
    from sklearn.covariance import ledoit_wolf

    matrix, _ = ledoit_wolf(errors.numpy(), assume_centered=True)
    covariance = inflation * torch.from_numpy(matrix)
    return Errors(covariance, widen_by_size(errors, rising, torch.from_numpy(matrix)))


def widen_by_size(
    errors: Float[Tensor, "runs classes"],
    rising: Bool[Tensor, "runs classes"],
    covariance: Float[Tensor, "classes classes"],
) -> tuple[float, ...]:
    """Return factors on normal intervals, by the number of labels, from 1 to half of them.

    With its factor, the interval of a sum over the labels that rise covers it in
    `INTERVAL_LEVEL` of the runs in which about as many rise. These are the `ALIKE_SHARE` of all
    runs that are closest on the log scale, with ties, and at least `MIN_ALIKE` if there are so
    many.
    """
    labels = rising.double()
    spread = ((labels @ covariance) * labels).sum(1).clamp(min=0).sqrt()
    varies = spread > 0
    ratios = (errors * labels).sum(1).abs()[varies] / spread[varies]
    sizes = labels.sum(1)[varies].log()
    half = max(1, rising.shape[1] // 2)
    if not len(ratios):
        return (1.0,) * half
    normal = NormalDist().inv_cdf((1 + INTERVAL_LEVEL) / 2)
    enough = min(len(ratios), max(MIN_ALIKE, round(ALIKE_SHARE * len(ratios))))
    factors = []
    for size in range(1, half + 1):
        distance = (sizes - math.log(size)).abs()
        # Ties, such as all runs with one label, must not be told apart by rounding.
        alike = ratios[distance <= distance.sort().values[enough - 1] + 1e-9].sort().values
        rank = min(len(alike), math.ceil(INTERVAL_LEVEL * (len(alike) + 1)))
        factors.append(float(alike[rank - 1]) / normal)
    return tuple(factors)
