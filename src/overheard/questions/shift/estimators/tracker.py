"""A tracker of a target's data, calibrated on simulated federations."""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import Timeline
from overheard.learning.fitting.standardizer import Standardizer, fit_standardizer
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.estimators.change_estimate import (
    ChangeEstimator,
    fit_change_estimator,
)
from overheard.questions.shift.estimators.change_scan import ChangeScan, fit_change_scan
from overheard.questions.shift.estimators.share_regression import (
    ShareRegression,
    fit_share_regression,
)
from overheard.questions.shift.estimators.simulated_readings import SimulatedReadings

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


@final
@dataclass(frozen=True, slots=True)
class RepresentationTrack:
    """How much further a target moves mean representations than simulated targets do.

    Inputs unlike any that the model was trained on move its representations further. New
    examples also move them further than familiar ones, and simulated targets exchange examples
    too. Distances below the mean of simulated targets count as that mean, and only larger ones
    are evidence.

    Args:
        scale: the scale of the log-distance of each round.

    """

    scale: Standardizer

    def read(
        self, changes: Float[Tensor, "runs rounds features"]
    ) -> Float[Tensor, "runs rounds one"]:
        """Return the distances in standard deviations; 0 = the mean of simulated targets."""
        return self.scale.standardize(_log_distance(changes)).clamp(min=0)[..., None]


def fit_representation_track(
    changes: Float[Tensor, "runs rounds features"],
) -> RepresentationTrack:
    """Fit how far simulated targets without a shift move representations in each round."""
    return RepresentationTrack(fit_standardizer(_log_distance(changes)))


def _log_distance(changes: Float[Tensor, "*many features"]) -> Float[Tensor, "*many"]:
    squares = changes.double().square().sum(-1)
    return squares.clamp(min=torch.finfo(torch.float64).tiny).log() / 2


VARIANCE_INFLATION = 1.1
"""Factor on the variance of simulated federations, for what is not simulated. Chosen on runs
of MNIST, Fashion-MNIST, Adult and WISDM that are in no reported figure."""

MAX_TRACKERS = 8
"""Calibrated trackers in memory, for runs that share their simulated federations."""


@final
@dataclass(frozen=True, slots=True)
class Tracker:
    """Turns a target's readings into a track, and judges whether and when it changed.

    Args:
        source: turns readings into the tracked numbers.
        alarm: the test for a change.
        estimator: estimates the change; None = of no label shares.
        rate: the stated false alarm rate.

    """

    source: ShareRegression | RepresentationTrack
    alarm: Alarm
    estimator: ChangeEstimator | None
    rate: float | None

    def claim(self, readings: Float[Tensor, "rounds ..."], rounds: tuple[int, ...]) -> Shift:
        """Return the claim about the target with these readings in these rounds.

        The evidence of a round, and so the alarm, depends on rounds up to it alone; the round
        of the change and the shares depend on all.
        """
        track = self.source.read(readings[None].double())[0]
        statistic, since = self.alarm.read(track)
        later, threshold = rounds[1:], self.alarm.threshold
        above = [
            number
            for number, value in zip(later, statistic, strict=True)
            if threshold is not None and value > threshold
        ]
        evidence = Timeline(
            later,
            tuple(statistic),
            None if threshold is None else (threshold,) * len(later),
            None if threshold is None else self.rate,
            above[0] if above else None,
            rounds[since[-1]],
        )
        if self.estimator is None:
            return Shift(evidence)
        return Shift(evidence, *self.estimator.read(track, since[-1]))


def calibrate_tracker(
    simulated: SimulatedReadings,
    places: tuple[int, ...],
    rate: float | None,
    *,
    estimates_shares: bool,
) -> Tracker:
    """Fit the track, the alarm and the intervals to simulated federations.

    Trackers of the same readings are fitted once.

    Args:
        simulated: readings of simulated federations.
        places: the simulated rounds that were observed, counted from 0.
        rate: probability of any alarm without a shift; None = never raise one.
        estimates_shares: whether readings are features of labels; else of representations.

    """
    return _fit(_Calibration(simulated.key, places, rate, estimates_shares, simulated))


@final
@dataclass(frozen=True, slots=True)
class _Calibration:
    """What a tracker is calibrated on; the key stands for the readings."""

    key: str
    places: tuple[int, ...]
    rate: float | None
    estimates_shares: bool
    simulated: SimulatedReadings = field(compare=False, repr=False)


@lru_cache(maxsize=MAX_TRACKERS)
def _fit(known: _Calibration) -> Tracker:
    places, simulated = list(known.places), known.simulated
    readings, shifts = simulated.readings[:, places].double(), simulated.shifts
    if not known.estimates_shares:
        representations = fit_representation_track(readings[~shifts])
        tracks = representations.read(readings[~shifts])
        alarm = calibrate_alarm(tracks, known.rate, VARIANCE_INFLATION)
        return Tracker(representations, alarm, None, known.rate)
    regression, tracks = fit_share_regression(readings, simulated.held[:, places])
    alarm = calibrate_alarm(tracks[~shifts], known.rate, VARIANCE_INFLATION)
    estimator = None
    if bool(shifts.any()):
        population = simulated.population[:, places]
        estimator = fit_change_estimator(alarm.scan, tracks, population, simulated.rising)
    return Tracker(regression, alarm, estimator, known.rate)
