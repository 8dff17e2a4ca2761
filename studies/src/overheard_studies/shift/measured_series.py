"""A measure by round, in every run with a shift and in its control."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from overheard.auditing.inputs import load_inputs
from overheard.auditing.knowledge import attacker_knowledge
from overheard.core.compute_settings import MemoryTensorCache
from overheard.core.knowledge import Knowledge
from overheard.learning.threads import one_thread
from overheard.plans.plan import UNDEFENDED, Plan
from overheard_studies.runs import ExperimentRuns
from overheard_studies.shift.measure import LeakageMeasure
from overheard_studies.shift.plans import plan_target

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


def measure_series(
    runs: ExperimentRuns, name: str, measures: Sequence[LeakageMeasure]
) -> tuple[MeasuredSeries, ...]:
    """Compute measures in all runs of one audit, as its attacker does.

    Args:
        runs: runs of the experiment.
        name: name of the audit.
        measures: measures of the audit's attacker.

    """
    plan = runs.plans[name]
    knowledge = _knowledge(plan, runs)
    federations = [(seed, is_control) for is_control in (False, True) for seed in plan.seeds]
    measured, what = list[list[RoundSeries]](), f"{name}: curves of all measures, by run"
    # As in the audit: results do not depend on the number of cores.
    with one_thread():
        for seed, is_control in federations:
            runs.report(what, len(measured), len(federations))
            measured.append(
                _measure_run(runs, name, seed, is_control, knowledge[seed], measures)
            )
    runs.report(what, len(measured), len(federations))
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


def _knowledge(plan: Plan, runs: ExperimentRuns) -> Mapping[int, Knowledge]:
    inputs = load_inputs(plan, runs.resources, MemoryTensorCache())
    return {
        seed: attacker_knowledge(plan.arms[0], seed, inputs, plan.threats[0])
        for seed in plan.seeds
    }


def _measure_run(
    runs: ExperimentRuns,
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
