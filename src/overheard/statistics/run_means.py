"""Means over the targets of several runs, with confidence intervals."""

from dataclasses import dataclass
from math import isfinite
from typing import final

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from overheard.statistics.estimate import (
    FEWEST_RUNS,
    TAIL,
    Estimate,
    convert_estimate,
    student_estimate,
    student_quantile,
    widen,
)
from overheard.statistics.exact_intervals import widen_proportion


def estimate_mean(
    values: Float[np.ndarray, " targets"],
    runs: Int[np.ndarray, " targets"],
    users: Int[np.ndarray, " targets"] | None = None,
    *,
    may_be_trials: bool = True,
) -> Estimate:
    """Return the mean of `values` with an interval over runs, or over the clients of few runs.

    - 5 runs and more: Student's interval over run means. Runs are weighted by their number of
      values, so that the mean is that of all values (ratio estimator: Cochran 1977, section
      6.4). It covers the mean over further runs.
    - Fewer runs: Student's interval over users within runs, with one variance for all runs. It
      covers the mean over further users of these runs only. A user of several runs counts once,
      as values of one user are alike in all runs. If each run has a single user, it is
      Student's interval over runs instead.

    If all values are 0 or 1, they count as trials, unless `may_be_trials` is false. The
    interval is then the wider of this one and the exact one of a proportion: see
    `widen_proportion`. A single user has no interval, nor has a mean that is not finite.

    Args:
        values: one per target.
        runs: the run of each target.
        users: the user or client of each target, whose values are averaged first; the same
            number in two runs is the same user. None = another one for each target.
        may_be_trials: whether values that are all 0 or 1 are trials. An AUC of 1 is none: it
            is a mean over many records.

    """
    return estimate_gain(
        values, np.zeros_like(values), runs, users, may_be_trials=may_be_trials
    )


def estimate_gain(
    values: Float[np.ndarray, " targets"],
    guesses: Float[np.ndarray, " targets"],
    runs: Int[np.ndarray, " targets"],
    users: Int[np.ndarray, " targets"] | None = None,
    sign: int = 1,
    *,
    may_be_trials: bool = True,
) -> Estimate:
    """Return the mean difference of `values` and `guesses`, as `estimate_mean` does.

    If all values are 0 or 1, the interval contains that of the values, less the mean of the
    guesses.

    Args:
        values: one per target.
        guesses: the value that an uninformed guess has for each target.
        runs: see `estimate_mean`.
        users: see `estimate_mean`.
        sign: 1 if larger values are better, else -1.
        may_be_trials: see `estimate_mean`.

    """
    mean = float(sign * (values - guesses).mean())
    if not isfinite(mean):
        return Estimate(mean, None, None)
    estimate = _student_interval(_sum_by_user(sign * (values - guesses), runs, users), mean)
    if not may_be_trials or not ((values == 0) | (values == 1)).all():
        return estimate
    share = _proportion(values, runs, users)
    return widen(estimate, convert_estimate(share, float(sign), -sign * float(guesses.mean())))


def _proportion(
    values: Float[np.ndarray, " targets"],
    runs: Int[np.ndarray, " targets"],
    users: Int[np.ndarray, " targets"] | None,
) -> Estimate:
    estimate = _student_interval(_sum_by_user(values, runs, users), float(values.mean()))
    if estimate.high is None:
        return estimate
    error = (estimate.high - estimate.mean) / student_quantile(TAIL, estimate.degrees)
    return widen_proportion(
        estimate, error, len(values if users is None else np.unique(users)), float(len(values))
    )


@final
@dataclass(frozen=True, slots=True)
class _UserSums:
    """Sums over the values of each user in each run.

    Args:
        run: index of the run, from 0.
        user: index of the user, from 0; the same in all runs.
        total: sum of the values.
        count: number of the values.

    """

    run: Int[np.ndarray, " users"]
    user: Int[np.ndarray, " users"]
    total: Float[np.ndarray, " users"]
    count: Int[np.ndarray, " users"]


def _sum_by_user(
    values: Float[np.ndarray, " targets"],
    runs: Int[np.ndarray, " targets"],
    users: Int[np.ndarray, " targets"] | None,
) -> _UserSums:
    _, run = np.unique(runs, return_inverse=True)
    if users is None:
        each = np.arange(len(values))
        return _UserSums(run, each, values, np.ones(len(values), dtype=np.int64))
    _, user = np.unique(users, return_inverse=True)
    pairs, index = np.unique(run * len(users) + user, return_inverse=True)
    runs_of_pairs, users_of_pairs = np.divmod(pairs, len(users))
    return _UserSums(
        runs_of_pairs, users_of_pairs, np.bincount(index, values), np.bincount(index)
    )


def _student_interval(sums: _UserSums, mean: float) -> Estimate:
    totals, counts = _sum_by(sums.run, sums.total), _sum_by(sums.run, sums.count)
    run_count, target_count, user_count = len(totals), int(counts.sum()), sums.user.max() + 1
    degrees = int(user_count) - _count_linked_runs(sums)
    if run_count >= FEWEST_RUNS or (run_count > 1 and degrees == 0):
        residuals = (totals - counts * mean) * run_count / target_count
        variance = float((residuals**2).sum()) / (run_count * (run_count - 1))
        return student_estimate(mean, variance**0.5, float(run_count - 1), "runs")
    if degrees == 0:
        return Estimate(mean, None, None)
    # What a user differs by in several runs is added before it is squared.
    residuals = _sum_by(sums.user, sums.total - sums.count * (totals / counts)[sums.run])
    variance = float((residuals**2).sum()) / degrees * float(user_count) / target_count**2
    return student_estimate(mean, variance**0.5, float(degrees), "these runs")


def _sum_by(
    group: Int[np.ndarray, " items"], values: Shaped[np.ndarray, " items"]
) -> Float[np.ndarray, " groups"]:
    sums: Float[np.ndarray, " groups"] = np.bincount(group, values).astype(np.float64)
    return sums


def _count_linked_runs(sums: _UserSums) -> int:
    """Return the number of groups of runs that have no user in common."""
    first_user, users = int(sums.run.max()) + 1, int(sums.user.max()) + 1
    if users == len(sums.user):
        return first_user  # nobody is in two runs
    nodes = first_user + users
    pairs = coo_array(
        (np.ones(len(sums.run)), (sums.run, first_user + sums.user)), shape=(nodes, nodes)
    )
    return int(connected_components(pairs, directed=False)[0])
