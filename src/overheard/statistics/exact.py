"""Intervals of counts that hold at any number of runs."""

from collections.abc import Sequence
from math import inf

from scipy.special import betaincinv
from scipy.stats import binom, chi2

from overheard.statistics.estimate import LEVEL, Estimate

_TAIL = (1 - LEVEL) / 2


def proportion(hits: float, trials: int, level: float = LEVEL) -> Estimate:
    """The share of hits with the interval of Clopper and Pearson 1934.

    Exact for independent trials and whole hits; a mean of shares within clusters may be given
    as hits among clusters. The share lies in it with a chance of `level` at least.
    """
    if not 0 <= hits <= trials or trials < 1:
        raise ValueError(f"hits are 0 to all of 1 trial or more, got {hits} of {trials}")
    tail = (1 - level) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return Estimate(hits / trials, low, high)


def mean_time_between(events: int, time: float) -> Estimate:
    """How long it takes from one event to the next, where the chance of one is always alike.

    `time` is how long was watched, which may end with an event. The interval is that of a
    Poisson count, exact (Garwood 1936); infinite, but for its low end, where none came.
    """
    if events < 0 or time <= 0:
        raise ValueError(f"0 events or more in a time above 0, got {events} in {time}")
    most = float(chi2.ppf(1 - _TAIL, 2 * (events + 1))) / 2
    least = float(chi2.ppf(_TAIL, 2 * events)) / 2 if events else 0.0
    return Estimate(
        time / events if events else inf, time / most, time / least if events else inf
    )


def middle(values: Sequence[float]) -> Estimate:
    """The median with its interval by order statistics (David and Nagaraja 2003, 7.1).

    It holds for any distribution; below 6 values there is none at this level.
    """
    ordered = sorted(values)
    count = len(ordered)
    if not count:
        raise ValueError("the median of no values is undefined")
    value = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    # So many values may lie below the median with a chance of at most the tail.
    below = int(binom.ppf(_TAIL, count, 0.5))
    if below < 1:
        return Estimate(value, None, None)
    return Estimate(value, ordered[below - 1], ordered[count - below])
