"""Counts of virtual clients and rounds with which an audit takes about a given time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean
from typing import final

from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import Resources, load_inputs, refuse_plan_without_split
from overheard.core.compute_settings import MemoryTensorCache
from overheard.core.errors import PlanError
from overheard.planning.accuracy_curves import MEASURED_ON, expected_errors
from overheard.planning.cost_estimate import WITHIN, CostEstimate, MeasuredAudit, measure_audit
from overheard.planning.durations import describe_duration, parse_duration
from overheard.planning.outlook import planned_views
from overheard.planning.recorded_facts import read_checked_recording
from overheard.planning.simulation_counts import (
    SimulationCounts,
    is_reduced,
    limited_rounds,
    simulates_clients,
    trains_virtual_clients,
)
from overheard.plans.plan import Plan, parse_plan

FEWEST_CLIENTS = 64
"""Virtual clients below which no attack was measured: two chunks."""

STEP = 32
"""Counts are multiples of it: virtual clients are trained in chunks of this size."""

ANY_ROUNDS = 10**9
"""More rounds than any attack reads."""

MEASURED_SHARE = 0.25
"""The part of the budget after which only attacks that train virtual clients are measured."""


@final
@dataclass(frozen=True, slots=True)
class PlannedBudget:
    """A plan that takes about a given time.

    Args:
        plan: the plan with the counts.
        sentences: the counts, the time they take and how they change the errors of attacks.

    """

    plan: Plan
    sentences: tuple[str, ...]


def plan_within_budget(
    plan: Plan,
    budget: str,
    folder: Path,
    *,
    resources: Resources | None = None,
    recording: Path | None = None,
) -> PlannedBudget:
    """Pick counts of virtual clients and rounds with which an audit takes about this time.

    Of the counts that fit, those with the smallest expected error are picked, never above those
    of the plan. If the folder holds an audit of this plan with the same counts or smaller ones,
    that audit is resumed with its counts, whatever the budget; the plan may have further
    seeds or arms. Times are estimates, within a factor of three.

    Args:
        plan: the plan.
        budget: a duration such as 90s, 10m or 2h.
        folder: the output folder of the audit.
        resources: where the data are, and the compute resources of the audit.
        recording: folder of the recording to audit; None = a simulation.

    Raises:
        PlanError: if even the smallest counts take longer; the message names the time.
        AuditError: as the audit itself would, if it could not begin.

    """
    try:
        seconds = parse_duration(budget)
    except ValueError as error:
        raise PlanError(f"budget: {error}") from None
    stored = _stored_plan(folder)
    if stored is not None and is_reduced(_with_runs_of(plan, stored), stored):
        resumed = plan.model_copy(update={"threats": stored.threats})
        return PlannedBudget(
            resumed,
            (f"{folder} holds this audit: it goes on with the counts of its plan.",),
        )
    facts = None if recording is None else read_checked_recording(recording)
    if facts is None:
        refuse_plan_without_split(plan)
    inputs = load_inputs(plan, resources or Resources(), MemoryTensorCache())
    views = planned_views(plan, inputs, facts)
    measured = measure_audit(plan, inputs, views, facts, seconds * MEASURED_SHARE)
    counts = pick_counts(measured, seconds)
    return PlannedBudget(
        plan_with(measured, counts), tuple(_sentences(measured, counts, seconds))
    )


def plan_with(measured: MeasuredAudit, counts: SimulationCounts) -> Plan:
    """Return the plan with these counts; what they do not reduce stays as it is."""
    plan, largest = measured.plan, largest_counts(measured)
    if counts == largest:
        return plan
    if counts.rounds == largest.rounds:
        counts = replace(counts, rounds=ANY_ROUNDS)
    return counts.plan(plan)


def pick_counts(measured: MeasuredAudit, seconds: float) -> SimulationCounts:
    """Return the counts with the smallest expected error that fit into this time.

    Raises:
        PlanError: if none fit; the message names the smallest possible time.

    """
    largest = largest_counts(measured)
    if measured.estimate(largest).seconds <= seconds:
        return largest
    fitting = [
        counts
        for rounds in range(1, largest.rounds + 1)
        if (counts := _most_clients(measured, seconds, largest.clients, rounds)) is not None
    ]
    if not fitting:
        raise _too_small(measured, largest, seconds)
    names = _simulating_names(measured.plan)
    return min(
        fitting,
        key=lambda one: (_expected_error(one, largest, names), -one.rounds, -one.clients),
    )


def largest_counts(measured: MeasuredAudit) -> SimulationCounts:
    """Return the largest counts of the plan, with rounds that the audit has; at least 1."""
    plan = measured.plan
    simulating = [threat for threat in plan.threats if simulates_clients(threat)]
    longest = max(map(measured.rounds_of, plan.arms))
    rounds = [
        min(limit, longest)
        for threat in simulating
        for attack in threat.attacks
        if (limit := limited_rounds(attack)) is not None
    ]
    return SimulationCounts(
        max((threat.virtual.clients for threat in simulating), default=1),
        max(rounds, default=1),
    )


def _expected_error(
    counts: SimulationCounts, largest: SimulationCounts, names: Sequence[str]
) -> float:
    """Return the geometric mean of the expected errors; 1 if none was measured."""
    errors = expected_errors(counts, largest, names)
    return geometric_mean(errors.values()) if errors else 1.0


def _simulating_names(plan: Plan) -> tuple[str, ...]:
    """Return the names of the attacks that train virtual clients, each once."""
    names = {
        attack.name: None
        for threat in plan.threats
        for attack in threat.attacks
        if trains_virtual_clients(attack)
    }
    return tuple(names)


def _most_clients(
    measured: MeasuredAudit, seconds: float, most: int, rounds: int
) -> SimulationCounts | None:
    """Return the most virtual clients that fit with these rounds; None = too few do."""
    for clients in (most, *range((most - 1) // STEP * STEP, FEWEST_CLIENTS - 1, -STEP)):
        counts = SimulationCounts(clients, rounds)
        if measured.estimate(counts).seconds <= seconds:
            return counts
    return None


def _too_small(measured: MeasuredAudit, largest: SimulationCounts, seconds: float) -> PlanError:
    """Return the error that names the smallest possible time, and what takes most of it."""
    smallest = SimulationCounts(min(FEWEST_CLIENTS, largest.clients), 1)
    cost = measured.estimate(smallest)
    parts = sorted(
        (*cost.attack_seconds, ("simulating the federations", cost.training_seconds)),
        key=lambda part: -part[1],
    )
    name, longest = parts[0]
    return PlanError(
        f"the audit takes about {describe_duration(cost.seconds)} at least, more than the "
        f"budget of {describe_duration(seconds)}: {describe_duration(longest)} of it are "
        f"{name}. That is with {smallest.clients} virtual clients in one round. Give a larger "
        "budget, or name fewer attacks, seeds or rounds in the plan."
    )


def _sentences(
    measured: MeasuredAudit, counts: SimulationCounts, seconds: float
) -> Iterator[str]:
    """Yield the counts, the time they take and how they change the errors of attacks."""
    largest, cost = largest_counts(measured), measured.estimate(counts)
    low, high = cost.seconds / WITHIN, cost.seconds * WITHIN
    takes = (
        f"the audit takes about {describe_duration(cost.seconds)}, between "
        f"{describe_duration(low)} and {describe_duration(high)}"
    )
    if counts == largest:
        yield f"Budget of {describe_duration(seconds)}: nothing is reduced; {takes}."
    else:
        yield (
            f"Budget of {describe_duration(seconds)}: at most {counts.clients} virtual clients "
            f"(planned: {largest.clients}) and {counts.rounds} rounds (planned: "
            f"{largest.rounds}); {takes}."
        )
        yield from _accuracy(measured.plan, counts, largest)
    yield from _unmeasured(cost)


def _accuracy(plan: Plan, counts: SimulationCounts, largest: SimulationCounts) -> Iterator[str]:
    names = _simulating_names(plan)
    errors = expected_errors(counts, largest, names)
    if errors:
        each = ", ".join(f"{name} {error:.2f}" for name, error in errors.items())
        yield f"Expected error, by that with the planned counts: {each} ({MEASURED_ON})."
    if others := [name for name in names if name not in errors]:
        yield f"What it costs in accuracy was not measured for {', '.join(others)}."


def _unmeasured(cost: CostEstimate) -> Iterator[str]:
    if cost.unmeasured:
        yield f"Not in that time, as not measured: {'; '.join(cost.unmeasured)}."


def _with_runs_of(plan: Plan, stored: Plan) -> Plan:
    """Return the plan with the runs of a stored one, which its further runs continue."""
    return plan.model_copy(update={"seeds": stored.seeds, "arms": stored.arms})


def _stored_plan(folder: Path) -> Plan | None:
    """Return the plan of the audit in a folder; None = there is none that can be read."""
    text = AuditFolder(folder).plan_text()
    if text is None:
        return None
    try:
        return parse_plan(text, str(folder / "plan.toml"))
    except PlanError:
        return None
