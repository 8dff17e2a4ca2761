"""The work items of an audit: its runs, and the attacks on each of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from overheard.core.errors import PlanError
from overheard.core.parties import (
    EXTERNAL_NAMES,
    SERVER,
    Party,
    client,
    is_external,
    party_sort_key,
)
from overheard.data.partition.schedule import Draws
from overheard.findings.control_draws import ControlDraws
from overheard.findings.question import Control, Question
from overheard.plans.plan import Plan, ThreatPlan, check_unique_threats
from overheard.plans.registries import question_of_attack
from overheard.statistics.evenly_spaced import select_evenly_spaced


def control_kind(plan: Plan) -> Control | None:
    """Return the kind of control that each run of an arm has; None = no control.

    "exchange" if a client shifts and an attack asks which one. In this control the same clients
    replace as many examples in the same rounds, but no distribution shifts; see
    `Schedule.control`. "permutation" if clients represent users and an attack asks
    for their identities. In this control the examples are permuted among the clients.

    Raises:
        PlanError: if attacks need both kinds, since each kind controls one question only.

    """
    wanted = {question.control for question in plan.questions()}
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


@final
@dataclass(frozen=True, slots=True)
class RunKind:
    """Which run of an arm and seed it is: the planned one, or one of its controls.

    Args:
        control: the kind of control; None = the planned run.
        draws: how a control by exchange draws its examples; "" for other runs.
        number: the number of the control among those with the same draws, from 0.
        is_first: whether no other control of the run comes before it.

    """

    control: Control | None = None
    draws: ControlDraws = ""
    number: int = 0
    is_first: bool = True

    @property
    def is_control(self) -> bool:
        """Whether it is a control."""
        return self.control is not None

    @property
    def folder_suffix(self) -> str:
        """What the name of its folder ends in."""
        if self.control is None or self.is_first:
            return "" if self.control is None else "-control"
        return f"-control-{self.draws}-{self.number}"


PLANNED = RunKind()


def run_kinds(plan: Plan) -> tuple[RunKind, ...]:
    """Return the kinds of runs of an arm and seed: the planned run, then its controls."""
    kind = control_kind(plan)
    if kind == "exchange":
        return (PLANNED, *_exchange_controls(plan))
    return (PLANNED,) if kind is None else (PLANNED, RunKind(kind))


def first_control(plan: Plan) -> RunKind:
    """Return the first control; one without shifts if no attack asks for a control."""
    controls = run_kinds(plan)[1:] or _exchange_controls(plan)
    return controls[0] if controls else RunKind("exchange", plan.data.exchanges)


def _exchange_controls(plan: Plan) -> tuple[RunKind, ...]:
    """Return the controls of a run with shifts, the natural ones first."""
    data = plan.data
    natural = data.natural_controls if data.exchanges == "natural" else 0
    wanted: list[tuple[Draws, int]] = [("natural", number) for number in range(natural)]
    wanted += [("exact", number) for number in range(data.exact_controls)]
    return tuple(
        RunKind("exchange", draws, number, place == 0)
        for place, (draws, number) in enumerate(wanted)
    )


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


def simulated_parties(plan: Plan) -> tuple[Party, ...]:
    """Return the parties of the plan's simulated runs that may observe."""
    return (SERVER, *map(client, range(plan.data.clients)))


def name_observers_of_run(plan: Plan, parties: Sequence[Party]) -> Plan:
    """Return the plan with the observers that its threats stand for in a run.

    Raises:
        PlanError: if a threat names an observer that is no party of the run, or two threats
            stand for the same one.

    """
    threats = tuple(one for threat in plan.threats for one in threat.in_run(parties))
    try:
        check_unique_threats(threats)
    except ValueError as error:
        raise PlanError(
            f"threats: {error}: remove the observers that another threat covers"
        ) from error
    named = plan.model_copy(update={"threats": threats})
    refuse_unknown_observers(named, parties)
    return named


def refuse_unknown_observers(plan: Plan, parties: Sequence[Party]) -> None:
    """Refuse observers that are not parties: their empty view would look like no leak.

    Raises:
        PlanError: if a threat names such an observer.

    """
    known = sorted(parties, key=party_sort_key)
    for number, threat in enumerate(plan.threats):
        for observer in threat.observer_parties:
            if observer not in known and not is_external(observer):
                raise PlanError(
                    f"threats.{number}.observers: {observer} is not a party of the run: choose "
                    f"from {', '.join(known)}, or {EXTERNAL_NAMES}"
                )


def count_work_items(plan: Plan) -> int:
    """Count the work items in the audit of a plan's simulated federations."""
    counts = [
        rounds + count_cells(plan, rounds, kind.is_control)
        for rounds in map(plan.rounds_of, plan.arms)
        for kind in run_kinds(plan)
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
