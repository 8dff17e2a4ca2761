"""Confidence intervals that are valid for few observations, and next to 0 and 1."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite, sqrt

from scipy.optimize import brentq
from scipy.special import betaincinv, gammaincinv

from overheard.statistics.estimate import (
    CONFIDENCE_LEVEL,
    TAIL,
    Estimate,
    student_quantile,
    widen,
)

_ROUNDING = 1e-18
"""Variance of a share below which it is due to rounding."""

_ROOT_MARGIN = 1e-9
"""Relative distance to the estimate, itself always a root, up to which a root is searched."""


def estimate_proportion(hits: float, trials: int, level: float = CONFIDENCE_LEVEL) -> Estimate:
    """Estimate a proportion with the interval of Clopper and Pearson 1934.

    The coverage is `level` or more for independent trials and integer hits. A sum of shares
    within clusters may be given as hits among clusters.
    """
    if not 0 <= hits <= trials or trials < 1:
        raise ValueError(f"hits must be 0 to the number of trials, got {hits} of {trials}")
    return _exact_proportion(hits, float(trials), (1 - level) / 2)


def _exact_proportion(hits: float, trials: float, tail: float) -> Estimate:
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return Estimate(hits / trials, low, high)


def widen_proportion(
    estimate: Estimate, standard_error: float, users: int, most_trials: float = inf
) -> Estimate:
    """Return a proportion with the wider of its interval and an exact one, from 0 to 1.

    The exact interval is that of Clopper and Pearson with the number of independent trials
    that has the same standard error, and the same quantile of Student's distribution (Korn and
    Graubard 1998). It is wider next to 0 and 1. For 0 and 1 themselves there is one trial per
    user.

    Args:
        estimate: the proportion with its interval; without one it is returned as it is.
        standard_error: the standard error of the interval.
        users: number of users or clients.
        most_trials: number of trials if all are independent; infinite = unknown. An estimate
            without a standard error then stays as it is.

    """
    if estimate.low is None or estimate.high is None:
        return estimate
    variance = estimate.mean * (1 - estimate.mean)
    if variance <= _ROUNDING:
        trials = float(users)
    elif standard_error**2 > _ROUNDING:
        quantiles = student_quantile(TAIL, None) / student_quantile(TAIL, estimate.degrees)
        trials = max(1.0, min(most_trials, variance / standard_error**2) * quantiles**2)
    elif isfinite(most_trials):
        trials = most_trials
    else:
        return estimate
    share = min(max(estimate.mean, 0.0), 1.0)
    wider = widen(estimate, _exact_proportion(share * trials, trials, TAIL))
    assert wider.low is not None
    assert wider.high is not None
    return replace(wider, low=max(wider.low, 0.0), high=min(wider.high, 1.0))


def estimate_auc_of_trials(value: float, positives: int, negatives: int) -> Estimate:
    """Return an AUC with its score interval, from independent positives and negatives.

    The variance is that of Hanley and McNeil 1982, solved for the ends as in Newcombe 2006
    (method 5). The interval has a width above 0 even if all pairs are ranked correctly.

    Args:
        value: the AUC.
        positives: number of independent positives, 1 or more.
        negatives: number of independent negatives, 1 or more.

    """
    if not 0 <= value <= 1 or positives < 1 or negatives < 1:
        raise ValueError(
            "value must be 0 to 1 and both numbers 1 or more, "
            f"got {value}, {positives} and {negatives}"
        )
    return Estimate(
        value,
        _lowest_auc(value, positives, negatives),
        1 - _lowest_auc(1 - value, positives, negatives),
    )


def _lowest_auc(value: float, positives: int, negatives: int) -> float:
    half = (positives + negatives) / 2

    def excess(area: float) -> float:
        inflation = 1 + (half - 1) * ((1 - area) / (2 - area) + area / (1 + area))
        error = sqrt(area * (1 - area) * inflation / (positives * negatives))
        return value - area - student_quantile(TAIL, None) * error

    return float(brentq(excess, 0.0, value * (1 - _ROOT_MARGIN))) if value > 0 else 0.0


def estimate_mean_time_between(events: int, time: float) -> Estimate:
    """Estimate the mean time between events of a constant rate.

    `time` is the observation time, which may end with an event. The interval is exact for a
    Poisson count (Garwood 1936). Without events the mean and the upper end are infinite.
    """
    if events < 0 or time <= 0:
        raise ValueError(f"events must be 0 or more and time above 0, got {events} in {time}")
    most = float(gammaincinv(events + 1, 1 - TAIL))
    least = float(gammaincinv(events, TAIL)) if events else 0.0
    return Estimate(
        time / events if events else inf, time / most, time / least if events else inf
    )


def estimate_median(values: Sequence[float]) -> Estimate:
    """Estimate the median with its interval by order statistics (David and Nagaraja 2003, 7.1).

    The interval is valid for any distribution. With fewer than 6 values there is none.
    """
    ordered = sorted(values)
    count = len(ordered)
    if not count:
        raise ValueError("the median of no values is undefined")
    value = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    # The largest number of values below the median at the tail probability.
    from scipy.stats import binom  # only here: importing it takes half a second

    below = int(binom.ppf(TAIL, count, 0.5))
    if below < 1:
        return Estimate(value, None, None)
    return Estimate(value, ordered[below - 1], ordered[count - below])
