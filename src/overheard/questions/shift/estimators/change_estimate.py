"""Estimates of the change of label shares and of the shares after it, with intervals."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import final

import torch
from jaxtyping import Bool, Float
from sklearn.covariance import ledoit_wolf
from torch import Tensor

from overheard.core.claims import INTERVAL_LEVEL
from overheard.questions.shift.claim import GaussianEstimate
from overheard.questions.shift.estimators.change_scan import ChangeScan


@final
@dataclass(frozen=True, slots=True)
class ChangeEstimator:
    """Estimates a change, with errors as in simulated federations whose target shifts.

    Args:
        scan: gives the weights of rounds.
        change_errors: covariance of the errors of the change.
        after_errors: covariance of the errors of the shares after it.

    """

    scan: ChangeScan
    change_errors: Float[Tensor, "classes classes"]
    after_errors: Float[Tensor, "classes classes"]

    def read(
        self, track: Float[Tensor, "rounds classes"], since: int
    ) -> tuple[GaussianEstimate, GaussianEstimate]:
        """Estimate the change at this round index, and the shares after it."""
        change, after = _point_estimates(self.scan, track.double(), since)
        return (
            GaussianEstimate(change, self.change_errors),
            GaussianEstimate(after, self.after_errors),
        )


def fit_change_estimator(
    scan: ChangeScan,
    tracks: Float[Tensor, "runs rounds classes"],
    shares: Float[Tensor, "runs rounds classes"],
    rising: Bool[Tensor, "runs classes"],
    inflation: float = 1.0,
) -> ChangeEstimator:
    """Measure the errors in simulated runs with a shift, whether or not an alarm is raised.

    The errors are those of the shares from which the target draws its examples, so they include
    the chance of the draw and a wrong round of the change. Covariances are shrunk as in Ledoit
    and Wolf 2004 and scaled so that the interval of the total share of the labels that rise
    covers it in `INTERVAL_LEVEL` of the runs (conformal prediction, Vovk et al. 2005).

    Args:
        scan: the scale of the evidence.
        tracks: the estimates of runs with a shift.
        shares: the shares from which the target draws.
        rising: the labels that rise, for each run.
        inflation: factor on the variance of simulated runs.

    """
    since = scan.read(tracks.double(), inflation)[1][:, -1].tolist()
    change_errors, after_errors = [], []
    for track, true, place in zip(tracks.double(), shares.double(), since, strict=True):
        change, after = _point_estimates(scan, track, place)
        change_errors.append(change - (true[-1] - true[0]))
        after_errors.append(after - true[-1])
    return ChangeEstimator(
        scan,
        inflation * _covering_covariance(torch.stack(change_errors), rising),
        inflation * _covering_covariance(torch.stack(after_errors), rising),
    )


def _point_estimates(
    scan: ChangeScan, track: Float[Tensor, "rounds classes"], since: int
) -> tuple[Tensor, Tensor]:
    before, after = slice(None, since), slice(since, None)
    shares_after = scan.round_weights(after) @ track[after]
    return shares_after - scan.round_weights(before) @ track[before], shares_after


def _covering_covariance(
    errors: Float[Tensor, "runs classes"], rising: Bool[Tensor, "runs classes"]
) -> Float[Tensor, "classes classes"]:
    matrix, _ = ledoit_wolf(errors.numpy(), assume_centered=True)
    covariance, labels = torch.from_numpy(matrix), rising.double()
    spread = ((labels @ covariance) * labels).sum(1).clamp(min=0).sqrt()
    ratio = ((errors * labels).sum(1).abs() / spread)[spread > 0].sort().values
    if not len(ratio):
        return covariance
    rank = min(len(ratio), math.ceil(INTERVAL_LEVEL * (len(ratio) + 1)))
    normal = NormalDist().inv_cdf((1 + INTERVAL_LEVEL) / 2)
    return covariance * (float(ratio[rank - 1]) / normal) ** 2
