"""A tracker of a target's data, calibrated on simulated federations."""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import Timeline
from overheard.learning.fitting.ridge import fit_ridge
from overheard.learning.fitting.standardizer import Standardizer, fit_standardizer
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.estimators.change_estimate import (
    ChangeEstimator,
    fit_change_estimator,
)
from overheard.questions.shift.estimators.change_scan import ChangeScan, fit_change_scan
from overheard.questions.shift.estimators.simulated_readings import SimulatedReadings

RIDGE_PENALTY = 1e-3
"""Ridge penalty per row, for features of variance 1; it only resolves collinear features."""

MIN_SLOPE = 0.05
"""Lower bound of the slope: estimates of a round with little signal are scaled up at most
twentyfold. Their errors scale with them, so such rounds have almost no weight."""

SHARE_FOLDS = 5
"""Each fold of the federations is estimated by a regression on the others."""

MOST_DEVIATIONS = 2.5
"""Features are limited to this many standard deviations of simulated federations. What lies far
outside is a peculiarity of the auxiliary examples rather than of the target."""

NEIGHBOURS = 1
"""A round's regression is also fitted to the rounds before and after it, of the simulations."""


@final
@dataclass(frozen=True, slots=True)
class ShareRegression:
    """Regressions from the features of a label to its share, one for each round.

    The features are standardised for each label and round, so that one regression serves all
    labels. It predicts the square root of the share, which is closer to linear in the features:
    a tenth more of a rare label changes a model more than a tenth more of a common one.
    Regression shrinks estimates to the mean; this slope is measured on federations that the
    regression was not fitted to, and inverted (inverse calibration), so that a share that rises
    by 0.2 is estimated to rise by 0.2.

    Args:
        feature_scale: the scale of each feature, for each round and label.
        root_scale: the scale of the root of each label's share.
        coefficients: from features to standardised roots, by round.
        slopes: the slope of estimates in the true shares, by round; 1 = not yet measured.
        mean: the mean estimate before the slope is inverted, by round and label.

    """

    feature_scale: Standardizer
    root_scale: Standardizer
    coefficients: Float[Tensor, "rounds features"]
    slopes: Float[Tensor, " rounds"]
    mean: Float[Tensor, "rounds classes"]

    def read(
        self, features: Float[Tensor, "runs rounds classes features"]
    ) -> Float[Tensor, "runs rounds classes"]:
        """Return the estimated shares; each round's depend on that round's features alone."""
        shrunk = _shrunk_shares(self, features)
        return self.mean + (shrunk - self.mean) / self.slopes[:, None]


def fit_share_regression(
    features: Float[Tensor, "federations rounds classes features"],
    shares: Float[Tensor, "federations rounds classes"],
) -> tuple[ShareRegression, Float[Tensor, "federations rounds classes"]]:
    """Fit the regression to all federations.

    Return it, and the estimates of each federation by a regression on the other folds.
    """
    fold = torch.arange(len(features)) % SHARE_FOLDS
    held_out = torch.empty_like(shares)
    for number in range(SHARE_FOLDS):
        own = fold == number
        if bool(own.any()):
            fitted = _fit_shares(features[~own], shares[~own])
            held_out[own] = _shrunk_shares(fitted, features[own])
    mean, slopes = held_out.mean(0), _slopes(held_out, shares)
    whole = _fit_shares(features, shares)
    regression = ShareRegression(
        whole.feature_scale, whole.root_scale, whole.coefficients, slopes, mean
    )
    return regression, mean + (held_out - mean) / slopes[:, None]


def _fit_shares(features: Tensor, shares: Tensor) -> ShareRegression:
    rounds, classes = shares.shape[1:]
    scale = fit_standardizer(features)
    standard = _standard(scale, features)
    roots = fit_standardizer(shares.sqrt().flatten(0, 1))
    goal = roots.standardize(shares.sqrt())
    penalty = standard.new_full((standard.shape[-1],), RIDGE_PENALTY)
    penalty[-1] = 0
    coefficients = []
    for place in range(rounds):
        near = slice(max(0, place - NEIGHBOURS), place + NEIGHBOURS + 1)
        rows = standard[:, near].flatten(0, 2)
        coefficients.append(fit_ridge(rows, goal[:, near].flatten(), penalty * len(rows)))
    return ShareRegression(
        scale,
        roots,
        torch.stack(coefficients),
        shares.new_ones(rounds),
        shares.new_zeros(rounds, classes),
    )


def _shrunk_shares(fitted: ShareRegression, features: Tensor) -> Tensor:
    standard = _standard(fitted.feature_scale, features)
    roots = torch.einsum("nrck,rk->nrc", standard, fitted.coefficients)
    scale = fitted.root_scale
    # A label with equal shares in all federations has no spread; it keeps its mean.
    spread = scale.deviation.where(scale.deviation.isfinite(), 0.0)
    squares = (roots * spread + scale.mean).clamp(min=0).square()
    total = squares.sum(-1, keepdim=True)
    uniform = torch.full_like(squares, 1 / squares.shape[-1])
    return torch.where(total > 0, squares / total, uniform)


def _slopes(estimates: Tensor, shares: Tensor) -> Float[Tensor, " rounds"]:
    """Return the slope of the estimates in the true shares, over federations and labels."""
    true = shares - shares.mean(0)
    moved = estimates - estimates.mean(0)
    energy = true.square().sum((0, 2))
    slopes: Tensor = (moved * true).sum((0, 2)) / energy.where(energy > 0, 1.0)
    return slopes.where(energy > 0, 1.0).clamp(min=MIN_SLOPE)


def _standard(scale: Standardizer, features: Tensor) -> Tensor:
    """Return the standardised features, limited, and a constant."""
    limited = scale.standardize(features).clamp(-MOST_DEVIATIONS, MOST_DEVIATIONS)
    return torch.cat((limited, torch.ones_like(limited[..., :1])), -1)


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

INTERVAL_INFLATION = 1.5
"""Factor on the variance of errors of an estimated change, of which a part is the same in all
runs of an auxiliary set and hardly shows in simulations from it. Chosen on tuning seeds of
MNIST, Fashion-MNIST, digits, letters, Adult and WISDM."""

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
    regression, tracks = fit_share_regression(readings, simulated.true_shares[:, places])
    alarm = calibrate_alarm(tracks[~shifts], known.rate, VARIANCE_INFLATION)
    estimator = None
    if bool(shifts.any()):
        population = simulated.population[:, places]
        estimator = fit_change_estimator(
            alarm.scan, tracks, population, simulated.rising, INTERVAL_INFLATION
        )
    return Tracker(regression, alarm, estimator, known.rate)
