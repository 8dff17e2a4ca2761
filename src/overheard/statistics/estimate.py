"""Estimates with their confidence intervals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

CONFIDENCE_LEVEL = 0.95
"""Level of confidence intervals."""

TAIL = (1 - CONFIDENCE_LEVEL) / 2
"""Probability that the true value lies beyond one end of an interval."""

BOOTSTRAP_DRAWS = 2000
"""Bootstrap draws: the ends of a 95 % interval then vary by a few hundredths of its width."""

FEWEST_RUNS = 5
"""Number of runs from which on an interval covers other runs. With fewer, the quantile of
Student's distribution is so large that the interval would say nothing."""

LARGE_SAMPLE = 1e9
"""Degrees of freedom for which Student's distribution is the normal one."""

IntervalBasis = Literal["runs", "these runs"]
"""runs: the interval covers the mean over further runs of the same kind; these runs: the mean
over further clients or users of the runs that were made, and it says nothing of other runs."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate over targets and runs, mostly a mean, with its 95 % interval.

    Args:
        mean: the estimate.
        low: lower end of the interval; None if there is no interval, as for a single value.
        high: upper end of the interval, likewise.
        basis: what the interval covers, if it is one of a mean; see `IntervalBasis`.
        degrees: degrees of freedom of Student's distribution, for other levels than 95 %;
            None = the normal distribution.

    """

    mean: float
    low: float | None
    high: float | None
    basis: IntervalBasis | None = None
    degrees: float | None = None

    def low_at(self, tail: float) -> float | None:
        """Return the lower end that the true value is below with this probability.

        The distance to the mean is that of the 95 % interval, scaled as Student's distribution
        is. This is exact for an interval of Student, and an approximation for others.
        """
        if self.low is None or tail == TAIL:
            return self.low
        return self.mean - self._scale(tail, self.mean - self.low)

    def high_at(self, tail: float) -> float | None:
        """Return the upper end that the true value is above with this probability."""
        if self.high is None or tail == TAIL:
            return self.high
        return self.mean + self._scale(tail, self.high - self.mean)

    def _scale(self, tail: float, distance: float) -> float:
        return (
            distance
            * student_quantile(tail, self.degrees)
            / student_quantile(TAIL, self.degrees)
        )


def student_quantile(tail: float, degrees: float | None) -> float:
    """Return the value that Student's distribution exceeds with this probability.

    >>> round(student_quantile(0.025, 4.0), 3), round(student_quantile(0.025, None), 3)
    (2.776, 1.96)
    """
    from scipy.special import stdtrit  # only here: `overheard check` seldom needs it

    return float(stdtrit(LARGE_SAMPLE if degrees is None else degrees, 1 - tail))


def student_estimate(
    mean: float, standard_error: float, degrees: float, basis: IntervalBasis
) -> Estimate:
    """Return the mean with Student's interval."""
    half = student_quantile(TAIL, degrees) * standard_error
    return Estimate(mean, mean - half, mean + half, basis, degrees)


def widen(estimate: Estimate, other: Estimate) -> Estimate:
    """Return the estimate with the lower of both lower ends and the higher of both upper ends.

    If one of the two has no interval, the estimate is returned as it is.
    """
    if estimate.low is None or estimate.high is None or other.low is None or other.high is None:
        return estimate
    return replace(
        estimate, low=min(estimate.low, other.low), high=max(estimate.high, other.high)
    )


def convert_estimate(estimate: Estimate, factor: float, offset: float) -> Estimate:
    """Return the estimate of `factor` times the value plus `offset`.

    >>> convert_estimate(Estimate(2.0, 1.0, 4.0), -1.0, 0.5)
    Estimate(mean=-1.5, low=-3.5, high=-0.5, basis=None, degrees=None)
    """
    ends = [
        None if end is None else factor * end + offset for end in (estimate.low, estimate.high)
    ]
    low, high = ends if factor >= 0 else ends[::-1]
    mean = factor * estimate.mean + offset
    return Estimate(mean, low, high, estimate.basis, estimate.degrees)


def estimate_strongest(gains: Sequence[Estimate]) -> Estimate:
    """Return the largest of the gains of several attacks, with the interval of the largest.

    The attack whose estimate is the largest is often the luckiest one, so that its own interval
    is too high. The interval returned runs from the largest lower end, each at 97.5 % divided
    among the attacks (Bonferroni), to the largest upper end, each at 97.5 %. It covers the
    largest of the true gains in 95 % of audits, however the attacks are correlated.

    An attack without an interval has unknown ends: the upper end is then None.

    Args:
        gains: the gain of each attack, one or more.

    """
    lows = [gain.low_at(TAIL / len(gains)) for gain in gains]
    highs = [gain.high for gain in gains]
    known_lows = [low for low in lows if low is not None]
    known_highs = [high for high in highs if high is not None]
    best = max(gains, key=lambda gain: gain.mean)
    return Estimate(
        best.mean,
        max(known_lows, default=None),
        max(known_highs) if len(known_highs) == len(gains) else None,
        "these runs" if any(gain.basis == "these runs" for gain in gains) else best.basis,
        best.degrees,
    )


def are_below(gains: Sequence[Estimate], margin: float) -> bool:
    """Return whether the upper 97.5 % end of every attack's gain is below the margin.

    This needs no correction for the number of attacks: the true gain of the strongest is above
    the margin in at most 2.5 % of the audits where this is returned as true by chance.
    """
    return all(gain.high is not None and gain.high < margin for gain in gains)
