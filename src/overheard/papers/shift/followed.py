"""A measure by round in every run of an audit that shifts, and in the control of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.auditing.knowledge import knowledge_of
from overheard.auditing.supplies import supply
from overheard.core.knowledge import Knowledge
from overheard.core.means import MemoryShelf
from overheard.learning.threads import one_thread
from overheard.papers.runs import Runs
from overheard.papers.shift.measure import LeakageMeasure
from overheard.papers.shift.plans import target_of
from overheard.plans.plan import UNDEFENDED, Plan

Series = Mapping[int, float]


@final
@dataclass(frozen=True, slots=True)
class Followed:
    """What one measure came to, run by run.

    Args:
        measure: which.
        since: the first round on new data.
        shifted: by round, of each run in which data shift.
        control: by round, of its control, in which they are exchanged and nothing shifts; in
            the same order.

    """

    measure: LeakageMeasure
    since: int
    shifted: tuple[Series, ...]
    control: tuple[Series, ...]


def follow(runs: Runs, name: str, measures: Sequence[LeakageMeasure]) -> tuple[Followed, ...]:
    """Follow measures through all runs of one of an experiment's audits, as its attacker does.

    Args:
        runs: of the experiment.
        name: of the audit.
        measures: that the audit's attacker follows.

    """
    plan = runs.plans[name]
    known = _knowledge(plan, runs)
    # As in the audit: the same bits whatever the machine's number of cores.
    with one_thread():
        told = {
            is_control: [
                _of_run(runs, name, seed, is_control, known[seed], measures)
                for seed in plan.seeds
            ]
            for is_control in (False, True)
        }
    return tuple(
        Followed(
            one,
            plan.data.shifts[0].round,
            tuple(run[place] for run in told[False]),
            tuple(run[place] for run in told[True]),
        )
        for place, one in enumerate(measures)
    )


def _knowledge(plan: Plan, runs: Runs) -> Mapping[int, Knowledge]:
    supplies = supply(plan, runs.resources, MemoryShelf())
    return {
        seed: knowledge_of(plan.arms[0], seed, supplies, plan.threats[0]) for seed in plan.seeds
    }


def _of_run(
    runs: Runs,
    name: str,
    seed: int,
    is_control: bool,
    known: Knowledge,
    measures: Sequence[LeakageMeasure],
) -> list[Series]:
    plan = runs.plans[name]
    transcript = runs.transcript(name, UNDEFENDED, seed, is_control=is_control)
    view = transcript.seen_by(*plan.threats[0].listeners)
    return [one.series(view, target_of(plan), known) for one in measures]
