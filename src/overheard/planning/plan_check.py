"""What a plan will run, refuse and cost, found out before it runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import final

from overheard.auditing.audited_run import check_draws
from overheard.auditing.inputs import Resources, load_inputs, refuse_plan_without_split
from overheard.auditing.recording import check_recording
from overheard.auditing.subject import DataFit, check_data
from overheard.core.compute_settings import MemoryTensorCache
from overheard.data.summary import summarise_data
from overheard.planning.cost_estimate import CostEstimate, measure_audit
from overheard.planning.outlook import AttackOutlook, planned_audit
from overheard.planning.planned_estimates import describe_planned_estimates
from overheard.planning.planned_sums import describe_planned_sums, describe_recorded_sums
from overheard.planning.recorded_facts import read_checked_recording
from overheard.plans.description import describe_bound
from overheard.plans.plan import Plan
from overheard.plans.planned_verdicts import (
    NO_TRUTH,
    TRUTH_OF_LIST,
    describe_missing_verdicts,
    describe_unlike_records,
)


@final
@dataclass(frozen=True, slots=True)
class PlanCheck:
    """What a plan will run, refuse and cost.

    Args:
        arms: names of the arms.
        seeds: number of seeds.
        runs: number of runs to simulate, control runs included; 0 for a recording.
        attacks: for each attack in each arm, whether it can run.
        missing_verdicts: a sentence for each question on which no verdict can be given.
        cost: time, memory and disk; None = not estimated.
        unused_seeds: seeds of the plan that an audit of a recording does not use.
        data: sentences on the data: what was read, what does not fit, and what is assumed.
        recording: sentences on what the check of the recording found.
        estimates: sentences on how closely canary clients will estimate epsilon.
        epsilon: how epsilon is bounded from canaries, in sentences; () = there are none.
        sums: what the sums of cohorts reveal of single clients, in sentences; () = nobody reads
            sums.

    """

    arms: tuple[str, ...]
    seeds: int
    runs: int
    attacks: tuple[AttackOutlook, ...]
    missing_verdicts: tuple[str, ...]
    cost: CostEstimate | None
    unused_seeds: tuple[int, ...] = ()
    data: tuple[str, ...] = ()
    recording: tuple[str, ...] = ()
    estimates: tuple[str, ...] = ()
    epsilon: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()

    @property
    def can_run(self) -> bool:
        """Whether at least one attack can run."""
        return any(one.able_count for one in self.attacks)

    def lines(self) -> Iterator[str]:
        """Yield all that was found out as lines of plain text."""
        yield from self.data
        arms = f"{len(self.arms)} arm{'s' if len(self.arms) != 1 else ''}"
        seeds = f"{self.seeds} seed{'s' if self.seeds != 1 else ''}"
        if self.runs:
            yield f"{arms} x {seeds}: {self.runs} runs to simulate, controls included"
        else:
            yield "one recorded run, nothing to simulate"
        yield from self.recording
        if self.unused_seeds:
            unused = ", ".join(map(str, self.unused_seeds))
            yield f"A recording is one run: only the first seed is used, not {unused}."
        for (arm, observers), outlooks in groupby(
            self.attacks, lambda one: (one.arm, one.observers)
        ):
            yield f"{arm}, observed by {observers}:"
            for one in outlooks:
                yield from _describe_outlook(one)
        if not self.can_run:
            yield "No attack can run."
        yield from self.missing_verdicts
        yield from self.estimates
        yield from self.epsilon
        yield from self.sums
        if self.cost is not None:
            yield from self.cost.lines()


def _describe_outlook(one: AttackOutlook) -> Iterator[str]:
    targets = f"{one.able_count} target{'s' if one.able_count != 1 else ''}"
    if one.able_count:
        yield f"  runs     {one.attack}: {one.question}, {targets}"
    for reason, count in one.missing:
        about = f" ({count} of the targets)" if one.able_count else ""
        yield f"  refused  {one.attack}{about}: needs {reason}"
    if not one.able_count and not one.missing:
        yield f"  refused  {one.attack}: there is no target"


def check_plan(
    plan: Plan, resources: Resources, recording: Path | None, *, with_estimate: bool = True
) -> PlanCheck:
    """Find out what a plan will run, refuse and cost; no federation is trained.

    Args:
        plan: the plan.
        resources: where the data are, and the compute resources of the audit.
        recording: folder of the recording to audit; None = a simulation.
        with_estimate: whether to estimate the cost; attacks are then run on one target to
            measure them.

    Raises:
        AuditError: if an audit of the plan could not begin, with the same message.

    """
    facts = None if recording is None else read_checked_recording(recording)
    if facts is None:
        refuse_plan_without_split(plan)
    audit_inputs = load_inputs(plan, resources, MemoryTensorCache())
    checked = None if recording is None else check_recording(plan, audit_inputs, recording)
    planned = planned_audit(plan, audit_inputs, checked)
    if checked is None:
        check_draws(planned.program, audit_inputs)
    runs, seen = planned.program.runs, planned.views[0].seen
    fit = DataFit() if checked is None else check_data(checked, seen.transcript)
    if facts is not None and not facts.has_truth:
        missing_verdicts: tuple[str, ...] = (
            TRUTH_OF_LIST if plan.data.lists_records else NO_TRUTH,
        )
    else:
        missing_verdicts = describe_missing_verdicts(
            plan, None if facts is None else facts.clients
        )
    if seen.difference is not None:
        missing_verdicts = (*missing_verdicts, *describe_unlike_records(plan, seen.difference))
    return PlanCheck(
        tuple(dict.fromkeys(run.name for run in runs)),
        len({run.seed for run in runs}),
        0 if facts is not None else len(runs),
        tuple(outlook for view in planned.views for outlook in view.outlooks()),
        missing_verdicts,
        measure_audit(planned, audit_inputs).estimate() if with_estimate else None,
        () if facts is None else plan.seeds[1:],
        (*summarise_data(audit_inputs.dataset, plan.data.split), *fit.warnings, *fit.notes),
        () if seen.recording is None else seen.recording.sentences,
        tuple(describe_planned_estimates(plan)) if facts is None else (),
        describe_bound(plan),
        tuple(
            describe_planned_sums(plan, planned.program, audit_inputs)
            if facts is None
            else describe_recorded_sums(planned.views)
        ),
    )
