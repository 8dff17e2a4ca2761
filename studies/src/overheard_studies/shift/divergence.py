"""Divergence of a measure from its trend at the round of a shift, and of its control."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import final

from scipy.stats import t as student

from overheard.questions.shift.estimators.trend import Trend
from overheard.report.experiment_page import Holds
from overheard.statistics.estimate import CONFIDENCE_LEVEL, Estimate
from overheard_studies.shift.measured_series import MeasuredSeries, RoundSeries

RunValues = tuple[float | None, ...]
"""One value per run; None if its series has no trend at that round."""

BASELINE_ROUNDS = 3
"""Rounds before the shift that give a measure's divergence without an exchange."""


@final
@dataclass(frozen=True, slots=True)
class Divergence:
    """The divergence of one measure from its trend at the round of the shift, by run.

    Args:
        shifted: divergence on the measure's own scale, in the runs that shift.
        control: divergence in the control of each of these runs.
        baseline: mean divergence of the control in the `BASELINE_ROUNDS` rounds before the
            exchange.
        deviations: `shifted` in units of the trend's standard error.
        control_deviations: `control` in the same units.
        outlier_deviation: deviation that is exceeded by chance in one of twenty rounds.

    """

    shifted: RunValues
    control: RunValues
    baseline: RunValues
    deviations: RunValues
    control_deviations: RunValues
    outlier_deviation: float

    @property
    def over_control(self) -> Estimate | None:
        """Return the divergence minus the control's, over runs; None if unmeasured."""
        return mean_over_runs(subtract_runs(self.shifted, self.control))

    @property
    def control_over_baseline(self) -> Estimate | None:
        """Return the control's divergence minus that in the rounds before the exchange."""
        return mean_over_runs(subtract_runs(self.control, self.baseline))

    @property
    def mean_deviation(self) -> Estimate | None:
        """Return the mean deviation in standard errors; None if unmeasured."""
        return mean_over_runs(self.deviations)

    @property
    def shows_shift(self) -> Holds:
        """Return whether the shift shows: the measure diverges more than its control."""
        return is_above(self.over_control, 0.0)

    @property
    def hides_shift(self) -> Holds:
        """Return whether the shift does not show.

        An interval that contains 0 cannot show that the measure diverges no more than its
        control. The whole interval of the mean deviation must therefore lie below
        `outlier_deviation`.
        """
        if self.shows_shift == "yes":
            return "no"
        return (
            "yes"
            if is_above(self.mean_deviation, self.outlier_deviation) == "no"
            else "undecided"
        )


def measure_divergence(followed: MeasuredSeries) -> Divergence:
    """Compute the divergence from the series of a measure."""
    measure, since = followed.measure, followed.shift_round

    def at_shift(trend: Trend, series: Sequence[RoundSeries]) -> RunValues:
        return tuple(trend.divergences(run).get(since) for run in series)

    return Divergence(
        at_shift(measure.trend, followed.shifted),
        at_shift(measure.trend, followed.control),
        tuple(_before(measure.trend.divergences(run), since) for run in followed.control),
        at_shift(measure.standardized_trend, followed.shifted),
        at_shift(measure.standardized_trend, followed.control),
        float(student.ppf((1 + CONFIDENCE_LEVEL) / 2, measure.attack.trend - 2)),
    )


def subtract_runs(values: RunValues, others: RunValues) -> RunValues:
    """Subtract the second values from the first, by run."""
    return tuple(
        None if one is None or other is None else one - other
        for one, other in zip(values, others, strict=True)
    )


def mean_within_runs(several: Sequence[RunValues]) -> RunValues:
    """Return the mean of several values within each run; None if one of them is missing."""
    return tuple(
        None if None in run else fmean(value for value in run if value is not None)
        for run in zip(*several, strict=True)
    )


def mean_over_runs(values: RunValues) -> Estimate | None:
    """Return the mean over the measured runs, with Student's interval; None if there are none.

    Three runs are too few for a bootstrap: its interval covers the true mean far less often
    than its level (three runs have the same sign by chance in one of four cases).
    """
    measured = [value for value in values if value is not None]
    if not measured:
        return None
    mean = fmean(measured)
    if len(measured) == 1:
        return Estimate(mean, None, None)
    half = (
        float(student.ppf((1 + CONFIDENCE_LEVEL) / 2, len(measured) - 1))
        * stdev(measured)
        / sqrt(len(measured))
    )
    return Estimate(mean, mean - half, mean + half)


def is_above(estimate: Estimate | None, bound: float) -> Holds:
    """Return whether a value is above a bound, by its interval."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return "undecided"
    if estimate.low > bound:
        return "yes"
    return "no" if estimate.high <= bound else "undecided"


def all_hold(parts: Sequence[Holds]) -> Holds:
    """Return whether all parts hold."""
    if "no" in parts:
        return "no"
    return "yes" if parts and set(parts) == {"yes"} else "undecided"


def any_holds(parts: Sequence[Holds]) -> Holds:
    """Return whether at least one part holds."""
    if "yes" in parts:
        return "yes"
    return "no" if parts and set(parts) == {"no"} else "undecided"


def negate(part: Holds) -> Holds:
    """Return the verdict on the negation."""
    match part:
        case "yes":
            return "no"
        case "no":
            return "yes"
        case _:
            return part


def _before(divergences: RoundSeries, since: int) -> float | None:
    before = [divergences[n] for n in range(since - BASELINE_ROUNDS, since) if n in divergences]
    return fmean(before) if before else None
