"""What the sums of a planned run will reveal: its cohorts are drawn, nothing is trained."""

from collections.abc import Iterable, Iterator

from overheard.auditing.inputs import AuditInputs
from overheard.auditing.program import AuditProgram
from overheard.auditing.simulate import build_federation
from overheard.core.messages import Message
from overheard.federation.cohort import draw_participants
from overheard.federation.federation import Federation
from overheard.participation.participation import (
    Participation,
    find_participation,
    make_participation,
)
from overheard.participation.sums_reading import TOO_LARGE, describe_sums, read_sums
from overheard.plans.plan import Plan


def describe_planned_sums(
    plan: Plan, program: AuditProgram, audit_inputs: AuditInputs
) -> Iterator[str]:
    """Yield what the sums of each arm with secure aggregation will reveal, for the first seed.

    Cohorts are those that an audit of the plan draws.
    """
    for run in program.runs:
        if run.seed != plan.seeds[0] or run.kind.is_control:
            continue
        if not any(one.masks_updates for one in run.arm.defenses):
            continue
        partition = audit_inputs.partition(run.seed)
        federation = build_federation(
            plan, run.arm, run.seed, partition, audit_inputs.dataset, audit_inputs.resources
        )
        if federation.distillation is None:
            yield from _sentences(planned_participation(federation), run.name)


def describe_recorded_sums(messages: Iterable[Message]) -> Iterator[str]:
    """Yield what the sums of a recording reveal; nothing if it has no sums."""
    yield from _sentences(find_participation(messages), "")


def planned_participation(federation: Federation) -> Participation | None:
    """Return who will take part in which round of a federation; None = nobody."""
    cohorts, totals = {}, {}
    place = {party: index for index, party in enumerate(federation.clients)}
    for number in range(federation.rounds):
        drawn = draw_participants(federation, number)
        if drawn:
            cohorts[number] = frozenset(drawn)
            sizes = (len(federation.rows[number][place[party]]) for party in drawn)
            totals[number] = sum(sizes)
    return make_participation(cohorts, totals)


def _sentences(participation: Participation | None, arm: str) -> Iterator[str]:
    if participation is None:
        return
    reading = read_sums(participation)
    if reading is None:
        yield TOO_LARGE
    else:
        yield from describe_sums(reading, f"arm “{arm}”" if arm else "")
