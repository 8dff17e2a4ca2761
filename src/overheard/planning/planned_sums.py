"""What the sums of a planned run will reveal: its cohorts are drawn, nothing is trained."""

from collections.abc import Iterator, Sequence
from itertools import compress

from overheard.auditing.inputs import AuditInputs
from overheard.auditing.program import AuditProgram
from overheard.auditing.simulate import build_federation
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.parties import SERVER, Party, is_client, joining_round
from overheard.federation.cohort import draw_participants
from overheard.federation.federation import Federation
from overheard.findings.names import name_observers
from overheard.participation.participation import (
    Participation,
    find_participation,
    make_participation,
)
from overheard.participation.sums_reading import TOO_LARGE, describe_sums, read_sums
from overheard.planning.outlook import PlannedView
from overheard.plans.plan import Plan, ThreatPlan


def describe_planned_sums(
    plan: Plan, program: AuditProgram, audit_inputs: AuditInputs
) -> Iterator[str]:
    """Yield what sums will reveal in each arm, for the first seed.

    The server reads them behind secure aggregation. Observers that read broadcasts and know the
    cohorts compute them. Cohorts are those that an audit of the plan draws.
    """
    for run in program.runs:
        if run.seed != plan.seeds[0] or run.kind.is_control or run.arm.distillation is not None:
            continue
        is_masked = any(one.masks_updates for one in run.arm.defenses)
        algorithm = plan.algorithm_of(run.arm)
        threats = (attacks[0].threat for attacks in run.by_threat())
        first_rounds = {
            one.observer_parties: first
            for one in threats
            if (first := _first_heard_round(one, algorithm)) is not None
        }
        if not (is_masked or first_rounds):
            continue
        partition = audit_inputs.partition(run.seed)
        federation = build_federation(
            plan, run.arm, run.seed, partition, audit_inputs.dataset, audit_inputs.resources
        )
        participation = planned_participation(federation)
        if is_masked:
            yield from _sentences(participation, run.name)
        for observers, first in first_rounds.items():
            heard = participation and heard_participation(participation, observers, first)
            yield from _sentences(heard, run.name, name_observers(observers))


def describe_recorded_sums(views: Sequence[PlannedView]) -> Iterator[str]:
    """Yield what the sums of a recording reveal, those that observers compute included."""
    yield from _sentences(find_participation(views[0].seen.transcript.messages), "")
    listening = {
        one.threat.observer_parties: one.view
        for one in views
        if "cohorts" in one.threat.knows
        and SERVER not in one.threat.observer_parties
        and not one.view.hidden_cohorts
    }
    for observers, view in listening.items():
        heard = find_participation(view.messages, observers)
        yield from _sentences(heard, "", name_observers(observers))


def _first_heard_round(threat: ThreatPlan, algorithm: Algorithm) -> int | None:
    """Return the first round whose sum the observers compute, and name; None = they do not."""
    observers = threat.observer_parties
    can_invert = algorithm.adds_mean or (not algorithm.hidden_mean and "recipe" in threat.knows)
    if SERVER in observers or "cohorts" not in threat.knows or not can_invert:
        return None
    if type(algorithm).sent_control is not Algorithm.sent_control:
        return None  # Corrected updates are no sums of single clients: see `deduce_means`.
    if any(map(is_client, observers)):
        return 0
    joined = min(
        (one for one in map(joining_round, observers) if one is not None), default=None
    )
    # To invert a step takes the change of the round before, unless nothing came before.
    return joined + 1 if joined and not algorithm.adds_mean else joined


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


def heard_participation(
    participation: Participation, observers: Sequence[Party], first: int
) -> Participation | None:
    """Return who is in the sums that observers compute from broadcasts; None = in none.

    They subtract their own updates, and read no numbers of examples.

    Args:
        participation: who takes part in which round.
        observers: who pool what they read, and know who took part.
        first: the first round of which they read the broadcasts before and after it.

    """
    cohorts = {
        number: frozenset(compress(participation.clients, took_part)) - frozenset(observers)
        for number, took_part in zip(
            participation.rounds, participation.took_part.tolist(), strict=True
        )
        if number >= first
    }
    named = {number: cohort for number, cohort in cohorts.items() if cohort}
    return make_participation(named, dict.fromkeys(named))


def _sentences(
    participation: Participation | None, arm: str, observers: str = ""
) -> Iterator[str]:
    if participation is None:
        return
    reading = read_sums(participation)
    if reading is None:
        yield TOO_LARGE
    else:
        yield from describe_sums(reading, f"arm “{arm}”" if arm else "", observers)
