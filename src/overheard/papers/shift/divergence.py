"""How far a measure lies off its trend at the round of a shift, and off its control's."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import final

from scipy.stats import t as student

from overheard.papers.shift.followed import Followed, Series
from overheard.questions.shift.estimators.trend import Trend
from overheard.report.experiment_page import Holds
from overheard.statistics.estimate import LEVEL, Estimate

Values = tuple[float | None, ...]
"""One a run; None where its series has no trend at that round."""

BEFORE = 3
"""Rounds before the shift that say how far off its trend a measure is when nothing happens."""


@final
@dataclass(frozen=True, slots=True)
class Divergence:
    """The divergence of one measure at the round of the shift, run by run.

    Args:
        shifted: on the measure's own scale, where data shift.
        control: of the control of each of these runs.
        before: the mean of the `BEFORE` rounds just before, when nothing is exchanged.
        deviations: as `shifted`, in units of the trend's standard error.
        control_deviations: as `control`, likewise.
        outlier: what a deviation exceeds by chance in one of twenty rounds.

    """

    shifted: Values
    control: Values
    before: Values
    deviations: Values
    control_deviations: Values
    outlier: float

    @property
    def over_control(self) -> Estimate | None:
        """How much farther off than its control, run by run; None where nothing was told."""
        return mean_by_run(less(self.shifted, self.control))

    @property
    def over_calm(self) -> Estimate | None:
        """How much farther off the control is than it was in the rounds before its exchange."""
        return mean_by_run(less(self.control, self.before))

    @property
    def deviation(self) -> Estimate | None:
        """The mean deviation in standard errors; None where nothing was told."""
        return mean_by_run(self.deviations)

    @property
    def shows(self) -> Holds:
        """Whether the shift shows: the measure lies farther off its trend than its control."""
        return is_above(self.over_control, 0.0)

    @property
    def is_silent(self) -> Holds:
        """Whether it does not show: no farther off, and nothing its own trend would not do.

        That it is no farther off than its control cannot be shown by an interval that holds
        0, so the mean deviation has to lie below an outlier's, interval and all.
        """
        if self.shows == "yes":
            return "no"
        return "yes" if is_above(self.deviation, self.outlier) == "no" else "undecided"


def divergence(followed: Followed) -> Divergence:
    """Read the divergence off the series of a measure."""
    measure, since = followed.measure, followed.since

    def at_shift(trend: Trend, series: Sequence[Series]) -> Values:
        return tuple(trend.divergences(run).get(since) for run in series)

    return Divergence(
        at_shift(measure.trend, followed.shifted),
        at_shift(measure.trend, followed.control),
        tuple(_before(measure.trend.divergences(run), since) for run in followed.control),
        at_shift(measure.standardised, followed.shifted),
        at_shift(measure.standardised, followed.control),
        float(student.ppf((1 + LEVEL) / 2, measure.attack.trend - 2)),
    )


def less(values: Values, others: Values) -> Values:
    """The first minus the second, run by run."""
    return tuple(
        None if one is None or other is None else one - other
        for one, other in zip(values, others, strict=True)
    )


def mean_of(several: Sequence[Values]) -> Values:
    """The mean of several numbers of each run; None where one of them is not told."""
    return tuple(
        None if None in run else fmean(value for value in run if value is not None)
        for run in zip(*several, strict=True)
    )


def mean_by_run(values: Values) -> Estimate | None:
    """The mean over the runs that tell, with Student's interval; None where none does.

    Three runs are too few to draw from: the bootstrap's interval of them holds the true mean
    far less often than it says (three draws alike in sign come by chance in one of four).
    """
    told = [value for value in values if value is not None]
    if not told:
        return None
    mean = fmean(told)
    if len(told) == 1:
        return Estimate(mean, None, None)
    half = float(student.ppf((1 + LEVEL) / 2, len(told) - 1)) * stdev(told) / sqrt(len(told))
    return Estimate(mean, mean - half, mean + half)


def is_above(estimate: Estimate | None, bar: float) -> Holds:
    """Whether the number lies above a bar, by its interval."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return "undecided"
    if estimate.low > bar:
        return "yes"
    return "no" if estimate.high <= bar else "undecided"


def all_hold(parts: Sequence[Holds]) -> Holds:
    """Whether every part holds."""
    if "no" in parts:
        return "no"
    return "yes" if parts and set(parts) == {"yes"} else "undecided"


def any_holds(parts: Sequence[Holds]) -> Holds:
    """Whether some part holds."""
    if "yes" in parts:
        return "yes"
    return "no" if parts and set(parts) == {"no"} else "undecided"


def opposite(part: Holds) -> Holds:
    """Whether the contrary holds."""
    match part:
        case "yes":
            return "no"
        case "no":
            return "yes"
        case _:
            return part


def _before(divergences: Series, since: int) -> float | None:
    told = [divergences[n] for n in range(since - BEFORE, since) if n in divergences]
    return fmean(told) if told else None
