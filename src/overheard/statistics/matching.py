"""ROC curves of scores that separate pairs of the same user from pairs of different users."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from overheard.core.seeds import Seed
from overheard.statistics.estimate import Estimate
from overheard.statistics.resample import Resampled, resampled

STEPS = 400
"""Thresholds per kind of pairs that the bootstrap uses: quantiles of the scores. The estimates
themselves use every score as a threshold."""


@final
@dataclass(frozen=True, slots=True)
class Matches:
    """Scored pairs of a target and a candidate, in one run.

    Args:
        scores: evidence that the two are the same user, larger = more.
        same: whether they are the same user.
        person: index of the target's user, which the bootstrap resamples.
        known: number of users that the attacker knows; they have the first indices.
        unknown: number of other users.

    """

    scores: Float[np.ndarray, " pairs"]
    same: Bool[np.ndarray, " pairs"]
    person: Int[np.ndarray, " pairs"]
    known: int
    unknown: int

    @property
    def has_both(self) -> bool:
        """Whether there are pairs of the same user and pairs of different users."""
        return bool(self.same.any()) and not bool(self.same.all())


@final
@dataclass(frozen=True, slots=True)
class Curve:
    """ROC curves: rates by threshold, from the highest threshold to the lowest.

    Args:
        false_alarms: the share of pairs of different users above the threshold, from 0 to 1.
        hits: the share of pairs of the same user above the threshold, from 0 to 1.

    """

    false_alarms: Float[np.ndarray, "draws steps"]
    hits: Float[np.ndarray, "draws steps"]

    def area(self) -> Float[np.ndarray, " draws"]:
        """Return the area under each curve; ties count half."""
        widths = np.diff(self.false_alarms, axis=1)
        heights: Float[np.ndarray, "draws widths"] = (self.hits[:, 1:] + self.hits[:, :-1]) / 2
        areas: Float[np.ndarray, " draws"] = (widths * heights).sum(1)
        return areas

    def equal_error(self) -> Float[np.ndarray, " draws"]:
        """Return the rate at which false positive and false negative rates are equal.

        The curve is interpolated linearly between thresholds, as by a random choice of them.
        """
        excess = self.false_alarms - (1 - self.hits)  # from -1 to 1, never falling
        after = (excess >= 0).argmax(1)
        draws, before = np.arange(len(after)), after - 1
        low, high = excess[draws, before], excess[draws, after]
        fraction = -low / (high - low)
        start, end = self.false_alarms[draws, before], self.false_alarms[draws, after]
        rates: Float[np.ndarray, " draws"] = start + fraction * (end - start)
        return rates


Figure = Callable[[Curve], Float[np.ndarray, " draws"]]


def curve(pairs: Matches) -> Curve:
    """Compute the ROC curve with every score as a threshold; the result has one draw."""
    order = np.argsort(-pairs.scores, kind="stable")
    ordered, same = pairs.scores[order], pairs.same[order]
    ends = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
    hits = np.cumsum(same)[ends] / same.sum()
    false = np.cumsum(~same)[ends] / (~same).sum()
    return Curve(np.append(0.0, false)[None], np.append(0.0, hits)[None])


def matching_auc(runs: Sequence[Matches], seed: Seed) -> Estimate:
    """Estimate the mean AUC over runs, with its interval over users."""
    return _over_runs(runs, Curve.area, seed)


def equal_error_rate(runs: Sequence[Matches], seed: Seed) -> Estimate:
    """Estimate the mean equal error rate over runs, with its interval over users."""
    return _over_runs(runs, Curve.equal_error, seed)


def _over_runs(runs: Sequence[Matches], statistic: Figure, seed: Seed) -> Estimate:
    value = float(np.mean([statistic(curve(run))[0] for run in runs]))
    resampled_runs = [
        Resampled(run.known, run.unknown, partial(_figure, statistic, _passed(run)))
        for run in runs
    ]
    return resampled(resampled_runs, seed, value)


@final
@dataclass(frozen=True, slots=True)
class _Passed:
    """Numbers of pairs of each user above a threshold, from the highest to no threshold."""

    same: Float[np.ndarray, "users steps"]
    other: Float[np.ndarray, "users steps"]


def _passed(pairs: Matches) -> _Passed:
    thresholds = np.unique(
        np.concatenate([_spread(pairs.scores[pairs.same]), _spread(pairs.scores[~pairs.same])])
    )
    steps, users = len(thresholds) + 1, pairs.known + pairs.unknown
    # The step of the highest threshold that a score reaches; the last step for none.
    first = len(thresholds) - np.searchsorted(thresholds, pairs.scores, side="right")
    cell = pairs.person * steps + first
    counts = [
        np.bincount(cell[kind], minlength=users * steps).reshape(users, steps)
        for kind in (pairs.same, ~pairs.same)
    ]
    return _Passed(*(table.cumsum(1).astype(np.float64) for table in counts))


def _spread(scores: Float[np.ndarray, " pairs"]) -> Float[np.ndarray, " steps"]:
    ordered = np.sort(scores)
    return ordered[np.linspace(0, len(ordered) - 1, STEPS).astype(np.int64)]


def _figure(
    statistic: Figure, passed: _Passed, multiplicity: Int[np.ndarray, "draws users"]
) -> Float[np.ndarray, " draws"]:
    zero = np.zeros((len(multiplicity), 1))
    rates = []
    for table in (passed.other, passed.same):
        counts = multiplicity.astype(np.float64) @ table  # (draws, steps)
        # A draw without pairs of this kind has no rate.
        with np.errstate(invalid="ignore"):
            rates.append(np.append(zero, counts / counts[:, -1:], axis=1))
    return statistic(Curve(*rates))


def hits_at(
    runs: Sequence[Matches], false_alarms: Float[np.ndarray, " rates"]
) -> Float[np.ndarray, " rates"]:
    """Return the mean true positive rate over runs at these false positive rates."""
    curves = [curve(run) for run in runs]
    rates = [np.interp(false_alarms, one.false_alarms[0], one.hits[0]) for one in curves]
    means: Float[np.ndarray, " rates"] = np.mean(rates, axis=0)
    return means
