"""The work items of an audit: its runs, and the attacks on each of them."""

from collections.abc import Sequence
from typing import Any

from overheard.core.errors import PlanError
from overheard.core.parties import Party, party_sort_key
from overheard.findings.question import Control, Question
from overheard.plans.plan import Plan, ThreatPlan
from overheard.plans.registries import question_of_attack
from overheard.statistics.evenly_spaced import select_evenly_spaced


def control_kind(plan: Plan) -> Control | None:
    """Return the kind of control that each run of an arm has; None = no control.

    "exchange" if a client shifts and an attack asks which one. In this control the same clients
    replace as many examples in the same rounds, but no distribution shifts. Before the first
    shift it equals the planned run. "permutation" if clients represent users and an attack asks
    for their identities. In this control the examples are permuted among the clients.

    Raises:
        PlanError: if attacks need both kinds, since each kind controls one question only.

    """
    wanted = {
        question_of_attack(attack).control
        for threat in plan.threats
        for attack in threat.attacks
    }
    shifts = any(not shift.is_refresh for shift in plan.data.shifts)
    found: list[Control] = []
    if shifts and "exchange" in wanted:
        found.append("exchange")
    if plan.data.people is not None and "permutation" in wanted:
        found.append("permutation")
    if len(found) > 1:
        raise PlanError(
            "threats: some attacks ask for shifts and some for identities, which need "
            "different control runs: split the plan in two"
        )
    return found[0] if found else None


def control_flags(plan: Plan) -> tuple[bool, ...]:
    """Return, for each run of an arm and seed, whether it is a control; the first is not."""
    return (False,) if control_kind(plan) is None else (False, True)


# Any: a question has claims of its own.
def applies_to_run(question: Question[Any], is_control: bool) -> bool:
    """Return whether the question is asked of a run: of a control only if it has controls."""
    return not is_control or question.control is not None


def single_rounds(
    threat: ThreatPlan, question: Question[Any], rounds: Sequence[int]
) -> tuple[int, ...]:
    """Return the rounds that are also attacked one by one, in order.

    There are none if a single round cannot answer the question, as for shifts. Single rounds of
    a user are covered by threats with one pseudonym a round, whose attackers learn from all.
    """
    if not threat.by_round or question.needs_all_rounds:
        return ()
    return (
        tuple(rounds)
        if threat.by_round is True
        else select_evenly_spaced(rounds, threat.by_round)
    )


def refuse_unknown_observers(plan: Plan, parties: Sequence[Party]) -> None:
    """Refuse observers that are not parties: their empty view would look like no leak.

    Raises:
        PlanError: if a threat names such an observer.

    """
    known = sorted(parties, key=party_sort_key)
    for number, threat in enumerate(plan.threats):
        for observer in threat.observer_parties:
            if observer not in known:
                raise PlanError(
                    f"threats.{number}.observers: {observer} is not a party of the run: choose "
                    f"from {', '.join(known)}"
                )


def count_work_items(plan: Plan) -> int:
    """Count the work items in the audit of a plan's simulated federations."""
    counts = [
        rounds + count_cells(plan, rounds, is_control)
        for rounds in map(plan.rounds_of, plan.arms)
        for is_control in control_flags(plan)
    ]
    return len(plan.seeds) * sum(counts)


def count_cells(plan: Plan, rounds: int, is_control: bool) -> int:
    """Count the cells for one run of this many rounds."""
    return sum(
        1 + len(single_rounds(threat, question_of_attack(attack), range(rounds)))
        for threat in plan.threats
        for attack in threat.attacks
        if applies_to_run(question_of_attack(attack), is_control)
    )
