"""Measures by round in the runs of an audit, and their divergence from their trends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from statistics import fmean, stdev
from typing import final

from pydantic import TypeAdapter
from scipy.stats import t as student

from overheard.auditing.inputs import load_inputs
from overheard.auditing.knowledge import attacker_knowledge
from overheard.core.compute_settings import MemoryTensorCache
from overheard.core.knowledge import Knowledge
from overheard.learning.threads import single_thread
from overheard.plans.plan import UNDEFENDED, Plan
from overheard.questions.shift.estimators.trend import Trend
from overheard.statistics.estimate import CONFIDENCE_LEVEL, Estimate
from overheard_studies.cached import load_or_measure
from overheard_studies.conclusion import is_above
from overheard_studies.pages.experiment_page import Holds
from overheard_studies.runs import StudyRuns
from overheard_studies.shift.setting import LOSS, LeakageMeasure, plan_target

RoundSeries = Mapping[int, float]


@final
@dataclass(frozen=True, slots=True)
class MeasuredSeries:
    """One measure by round, for each run.

    Args:
        measure: measure.
        shift_round: first round on new data.
        shifted: values by round, for each run with a shift.
        control: values by round, for the control of each run, in which examples are exchanged
            without a shift; in the same order.

    """

    measure: LeakageMeasure
    shift_round: int
    shifted: tuple[RoundSeries, ...]
    control: tuple[RoundSeries, ...]

    def select_runs(self, positions: Sequence[int]) -> "MeasuredSeries":
        """Return the measure in some of the runs, by their positions from 0 on."""
        return replace(
            self,
            shifted=tuple(self.shifted[n] for n in positions),
            control=tuple(self.control[n] for n in positions),
        )


MeasuredRuns = tuple[tuple[RoundSeries, ...], ...]
"""Each measure by round, for each run with a shift and then for each control."""

KEPT: TypeAdapter[tuple[str, MeasuredRuns]] = TypeAdapter(
    tuple[str, tuple[tuple[dict[int, float], ...], ...]]
)


def load_series(
    runs: StudyRuns, name: str, measures: Sequence[LeakageMeasure]
) -> tuple[MeasuredSeries, ...]:
    """Return the measures of an audit, from `series.json` in its folder if it fits.

    Args:
        runs: runs of the study.
        name: name of the audit.
        measures: measures of the audit's attacker.

    """
    plan = runs.plans[name]
    origin = runs.describe_origin((name,), load_series.__module__)
    origin += ", ".join(one.key for one in measures)
    path, measure = (
        runs.folder / name / "series.json",
        partial(measure_runs, runs, name, measures),
    )
    measured = load_or_measure(path, origin, KEPT, measure)
    shifted, control = measured[: len(plan.seeds)], measured[len(plan.seeds) :]
    return tuple(
        MeasuredSeries(
            one,
            plan.data.shifts[0].round,
            tuple(run[index] for run in shifted),
            tuple(run[index] for run in control),
        )
        for index, one in enumerate(measures)
    )


def measure_runs(
    runs: StudyRuns, name: str, measures: Sequence[LeakageMeasure]
) -> MeasuredRuns:
    """Compute measures in all runs of one audit, as its attacker does."""
    plan = runs.plans[name]
    knowledge = _knowledge(plan, runs)
    federations = [(seed, is_control) for is_control in (False, True) for seed in plan.seeds]
    measured, what = list[tuple[RoundSeries, ...]](), f"{name}: curves of all measures, by run"
    # As in the audit: results do not depend on the number of cores.
    with single_thread():
        for seed, is_control in federations:
            runs.report(what, len(measured), len(federations))
            of_run = _measure_run(runs, name, seed, is_control, knowledge[seed], measures)
            measured.append(tuple(of_run))
    runs.report(what, len(measured), len(federations))
    return tuple(measured)


def _knowledge(plan: Plan, runs: StudyRuns) -> Mapping[int, Knowledge]:
    inputs = load_inputs(plan, runs.resources, MemoryTensorCache())
    return {
        seed: attacker_knowledge(plan.arms[0], plan.threats[0], inputs.for_attackers(seed))
        for seed in plan.seeds
    }


def _measure_run(
    runs: StudyRuns,
    name: str,
    seed: int,
    is_control: bool,
    knowledge: Knowledge,
    measures: Sequence[LeakageMeasure],
) -> list[RoundSeries]:
    plan = runs.plans[name]
    transcript = runs.transcript(name, UNDEFENDED, seed, is_control=is_control)
    view = transcript.seen_by(*plan.threats[0].observer_parties)
    return [one.read_series(view, plan_target(plan), knowledge) for one in measures]


RunValues = tuple[float | None, ...]
"""One value per run; None if its series has no trend at that round."""

BASELINE_ROUNDS = 3
"""Rounds before the shift that give a measure's divergence without an exchange."""

OUTLIER_DEVIATION = float(student.ppf((1 + CONFIDENCE_LEVEL) / 2, LOSS.attack.trend - 2))
"""Deviation in standard errors that is exceeded by chance in one of twenty rounds."""


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

    """

    shifted: RunValues
    control: RunValues
    baseline: RunValues
    deviations: RunValues
    control_deviations: RunValues

    @property
    def over_control(self) -> Estimate | None:
        """Return the divergence minus the control's, over runs; None if unmeasured."""
        return mean_over_runs(subtract_runs(self.shifted, self.control))

    @property
    def over_two_controls(self) -> Estimate | None:
        """Return the divergence minus twice the control's: above 0, most is of the shift."""
        return mean_over_runs(
            subtract_runs(subtract_runs(self.shifted, self.control), self.control)
        )

    @property
    def signals(self) -> RunValues:
        """Return the divergence minus the control's, in standard deviations of the controls."""
        controls = [value for value in self.control if value is not None]
        spread = stdev(controls) if len(controls) > 1 else 0.0
        return tuple(
            None if value is None or not spread else value / spread
            for value in subtract_runs(self.shifted, self.control)
        )

    @property
    def control_over_baseline(self) -> Estimate | None:
        """Return the control's divergence minus that in the rounds before the exchange."""
        return mean_over_runs(subtract_runs(self.control, self.baseline))

    @property
    def mean_deviation(self) -> Estimate | None:
        """Return the mean deviation in standard errors; None if unmeasured."""
        return mean_over_runs(self.deviations)

    @property
    def mean_control_deviation(self) -> Estimate | None:
        """Return the control's mean deviation in standard errors; None if unmeasured."""
        return mean_over_runs(self.control_deviations)

    @property
    def shows_shift(self) -> Holds:
        """Return whether the shift shows: the measure diverges more than its control."""
        return is_above(self.over_control, 0.0)

    @property
    def hides_shift(self) -> Holds:
        """Return whether the shift does not show.

        An interval that contains 0 cannot show that the measure diverges no more than its
        control. The whole interval of the mean deviation must therefore lie below
        `OUTLIER_DEVIATION`.
        """
        if self.shows_shift == "yes":
            return "no"
        return (
            "yes" if is_above(self.mean_deviation, OUTLIER_DEVIATION) == "no" else "undecided"
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


def _before(divergences: RoundSeries, since: int) -> float | None:
    before = [divergences[n] for n in range(since - BASELINE_ROUNDS, since) if n in divergences]
    return fmean(before) if before else None
