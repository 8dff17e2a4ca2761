"""An alarm whose rate in runs without a shift is that of simulated federations."""

import math
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.questions.shift.estimators.change_scan import ChangeScan, fit_change_scan

FOLDS = 10
"""Each fold of the simulated runs is scanned on the scale of the others, as a real run is."""


@final
@dataclass(frozen=True, slots=True)
class Alarm:
    """A scan for a change, with the threshold of its evidence.

    Args:
        scan: the scale of the evidence.
        threshold: an alarm is raised above it, in any round; None = not calibrated.
        inflation: factor on the variance of simulated runs.

    """

    scan: ChangeScan
    threshold: float | None
    inflation: float = 1.0

    def read(self, track: Float[Tensor, "rounds numbers"]) -> tuple[list[float], list[int]]:
        """Return the evidence at each round but the first, and the round of the change."""
        evidence, since = self.scan.read(track[None].double(), self.inflation)
        return evidence[0].tolist(), since[0].tolist()


def calibrate_alarm(
    tracks: Float[Tensor, "runs rounds numbers"], rate: float | None, inflation: float = 1.0
) -> Alarm:
    """Set the threshold so that a run like the simulated ones exceeds it at most at this rate.

    The largest evidence of a real run is above the k-th largest of n simulated ones with
    probability k / (n + 1) at most, if all are exchangeable (conformal prediction, Vovk and
    others 2005). The largest k is taken for which this is within the rate.

    Args:
        tracks: tracks of simulated runs without a shift.
        rate: probability of an alarm in any round of a run without a shift; None = no alarm.
        inflation: factor on the variance of simulated runs, for what is not simulated.

    """
    scan, runs, peaks = fit_change_scan(tracks), len(tracks), []
    above = 0 if rate is None else math.floor(rate * (runs + 1))
    if not above:
        return Alarm(scan, None, inflation)
    for fold in range(FOLDS):
        own = torch.arange(runs) % FOLDS == fold
        if bool(own.any()) and bool((~own).any()):
            peaks.append(fit_change_scan(tracks[~own]).read(tracks[own].double())[0].amax(1))
    threshold = torch.cat(peaks).sort(descending=True).values[above - 1]
    return Alarm(scan, float(threshold), inflation)
