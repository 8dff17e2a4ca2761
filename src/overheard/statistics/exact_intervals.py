"""Exact confidence intervals, valid for any number of observations."""

from collections.abc import Sequence
from math import inf

from scipy.special import betaincinv
from scipy.stats import binom, chi2

from overheard.statistics.estimate import CONFIDENCE_LEVEL, Estimate

_TAIL = (1 - CONFIDENCE_LEVEL) / 2


def estimate_proportion(hits: float, trials: int, level: float = CONFIDENCE_LEVEL) -> Estimate:
    """Estimate a proportion with the interval of Clopper and Pearson 1934.

    The coverage is `level` or more for independent trials and integer hits. A sum of shares
    within clusters may be given as hits among clusters.
    """
    if not 0 <= hits <= trials or trials < 1:
        raise ValueError(f"hits must be 0 to the number of trials, got {hits} of {trials}")
    tail = (1 - level) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return Estimate(hits / trials, low, high)


def estimate_mean_time_between(events: int, time: float) -> Estimate:
    """Estimate the mean time between events of a constant rate.

    `time` is the observation time, which may end with an event. The interval is exact for a
    Poisson count (Garwood 1936). Without events the mean and the upper end are infinite.
    """
    if events < 0 or time <= 0:
        raise ValueError(f"events must be 0 or more and time above 0, got {events} in {time}")
    most = float(chi2.ppf(1 - _TAIL, 2 * (events + 1))) / 2
    least = float(chi2.ppf(_TAIL, 2 * events)) / 2 if events else 0.0
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
    below = int(binom.ppf(_TAIL, count, 0.5))
    if below < 1:
        return Estimate(value, None, None)
    return Estimate(value, ordered[below - 1], ordered[count - below])
