"""ROC curves of scores that separate pairs of the same user from pairs of different users."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

from overheard.core.seeds import Seed
from overheard.statistics.bootstrap import ResampledRun, bootstrap_mean
from overheard.statistics.estimate import Estimate

BOOTSTRAP_THRESHOLDS = 400
"""Thresholds that the bootstrap takes from the pairs of the same user, and as many from the
others: quantiles of their scores. The estimates themselves use every score as a threshold."""


@final
@dataclass(frozen=True, slots=True)
class ScoredPairs:
    """Scored pairs of a target and a candidate, in one run.

    Args:
        scores: evidence that the two are the same user, larger = more.
        is_same_user: whether they are the same user.
        target_users: index of the user of each target; the bootstrap resamples users.
        known_users: number of users that the attacker knows; they have the first indices.
        unknown_users: number of other users.

    """

    scores: Float[np.ndarray, " pairs"]
    is_same_user: Bool[np.ndarray, " pairs"]
    target_users: Int[np.ndarray, " pairs"]
    known_users: int
    unknown_users: int

    @property
    def has_both_kinds(self) -> bool:
        """Whether there are pairs of the same user and pairs of different users."""
        return bool(self.is_same_user.any()) and not bool(self.is_same_user.all())


@final
@dataclass(frozen=True, slots=True)
class RocCurve:
    """ROC curves, one per bootstrap draw: rates by threshold, from the highest to the lowest.

    Args:
        false_positive_rates: the share of pairs of different users above the threshold, from 0
            to 1.
        true_positive_rates: the share of pairs of the same user above the threshold, from 0 to
            1.

    """

    false_positive_rates: Float[np.ndarray, "draws steps"]
    true_positive_rates: Float[np.ndarray, "draws steps"]

    def auc(self) -> Float[np.ndarray, " draws"]:
        """Return the area under each curve; ties count half."""
        widths = np.diff(self.false_positive_rates, axis=1)
        heights: Float[np.ndarray, "draws widths"] = (
            self.true_positive_rates[:, 1:] + self.true_positive_rates[:, :-1]
        ) / 2
        areas: Float[np.ndarray, " draws"] = (widths * heights).sum(1)
        return areas

    def equal_error_rate(self) -> Float[np.ndarray, " draws"]:
        """Return the rate at which false positive and false negative rates are equal.

        The curve is interpolated linearly between two thresholds, as if one of the two were
        drawn at random for each pair.
        """
        excess = self.false_positive_rates - (
            1 - self.true_positive_rates
        )  # from -1 to 1, never falling
        after = (excess >= 0).argmax(1)
        draws, before = np.arange(len(after)), after - 1
        low, high = excess[draws, before], excess[draws, after]
        fraction = -low / (high - low)
        start, end = (
            self.false_positive_rates[draws, before],
            self.false_positive_rates[draws, after],
        )
        rates: Float[np.ndarray, " draws"] = start + fraction * (end - start)
        return rates


CurveStatistic = Callable[[RocCurve], Float[np.ndarray, " draws"]]


def compute_roc(pairs: ScoredPairs) -> RocCurve:
    """Compute the ROC curve with every score as a threshold; the result has one draw."""
    order = np.argsort(-pairs.scores, kind="stable")
    ordered, same = pairs.scores[order], pairs.is_same_user[order]
    ends = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)
    true_rates = np.cumsum(same)[ends] / same.sum()
    false_rates = np.cumsum(~same)[ends] / (~same).sum()
    return RocCurve(np.append(0.0, false_rates)[None], np.append(0.0, true_rates)[None])


def estimate_auc(runs: Sequence[ScoredPairs], seed: Seed) -> Estimate:
    """Estimate the mean AUC over runs, with the interval of `bootstrap_mean`."""
    return _estimate_over_runs(runs, RocCurve.auc, seed)


def estimate_equal_error_rate(runs: Sequence[ScoredPairs], seed: Seed) -> Estimate:
    """Estimate the mean equal error rate over runs, with the interval of `bootstrap_mean`."""
    return _estimate_over_runs(runs, RocCurve.equal_error_rate, seed)


def _estimate_over_runs(
    runs: Sequence[ScoredPairs], statistic: CurveStatistic, seed: Seed
) -> Estimate:
    value = float(np.mean([statistic(compute_roc(run))[0] for run in runs]))
    resampled_runs = [
        ResampledRun(
            run.known_users,
            run.unknown_users,
            partial(_curve_statistic, statistic, _count_pairs(run)),
        )
        for run in runs
    ]
    return bootstrap_mean(resampled_runs, seed, value)


@final
@dataclass(frozen=True, slots=True)
class _PairCounts:
    """Numbers of pairs of each user that reach a threshold, from the highest to the lowest.

    The last step counts all pairs.
    """

    same: Float[np.ndarray, "users steps"]
    other: Float[np.ndarray, "users steps"]


def _count_pairs(pairs: ScoredPairs) -> _PairCounts:
    thresholds = np.unique(
        np.concatenate(
            [
                _select_thresholds(pairs.scores[pairs.is_same_user]),
                _select_thresholds(pairs.scores[~pairs.is_same_user]),
            ]
        )
    )
    steps, users = len(thresholds) + 1, pairs.known_users + pairs.unknown_users
    # The step of the highest threshold that a score reaches; the last step for none.
    first = len(thresholds) - np.searchsorted(thresholds, pairs.scores, side="right")
    flat_index = pairs.target_users * steps + first
    counts = [
        np.bincount(flat_index[kind], minlength=users * steps).reshape(users, steps)
        for kind in (pairs.is_same_user, ~pairs.is_same_user)
    ]
    return _PairCounts(*(table.cumsum(1).astype(np.float64) for table in counts))


def _select_thresholds(scores: Float[np.ndarray, " pairs"]) -> Float[np.ndarray, " steps"]:
    ordered = np.sort(scores)
    return ordered[np.linspace(0, len(ordered) - 1, BOOTSTRAP_THRESHOLDS).astype(np.int64)]


def _curve_statistic(
    statistic: CurveStatistic,
    pair_counts: _PairCounts,
    multiplicity: Int[np.ndarray, "draws users"],
) -> Float[np.ndarray, " draws"]:
    zero = np.zeros((len(multiplicity), 1))
    rates = []
    for table in (pair_counts.other, pair_counts.same):
        counts = multiplicity.astype(np.float64) @ table  # (draws, steps)
        # A draw without pairs of this kind has no rate.
        with np.errstate(invalid="ignore"):
            rates.append(np.append(zero, counts / counts[:, -1:], axis=1))
    return statistic(RocCurve(*rates))


def true_positive_rates_at(
    runs: Sequence[ScoredPairs], false_positive_rates: Float[np.ndarray, " rates"]
) -> Float[np.ndarray, " rates"]:
    """Return the mean true positive rate over runs at these false positive rates."""
    curves = [compute_roc(run) for run in runs]
    rates = [
        np.interp(false_positive_rates, one.false_positive_rates[0], one.true_positive_rates[0])
        for one in curves
    ]
    means: Float[np.ndarray, " rates"] = np.mean(rates, axis=0)
    return means
