"""Of what pieces of work an audit is made: which runs there are, and who listens to what."""

from collections.abc import Sequence
from typing import Any

from overheard.core.errors import PlanError
from overheard.core.parties import Party, by_number
from overheard.findings.question import Control, Question
from overheard.plans.kinds import question_of
from overheard.plans.plan import Plan, ThreatPlan
from overheard.statistics.spread import spread


def control_of(plan: Plan) -> Control | None:
    """The control that runs beside each run of an arm under a seed; None = none.

    "exchange" where some client shifts and some attack asks who does. In it the same clients
    exchange their examples in the same rounds, and nothing shifts; up to the first shift it is
    the same run. "permutation" where clients stand for people and some attack asks who they
    are: in it their examples were dealt anew among them by chance.

    Raises:
        PlanError: if both are asked: what controls the one tells of the other nothing.

    """
    asked = {
        question_of(attack).control for threat in plan.threats for attack in threat.attacks
    }
    shifts = any(not shift.is_exchange for shift in plan.data.shifts)
    found: list[Control] = []
    if shifts and "exchange" in asked:
        found.append("exchange")
    if plan.data.people is not None and "permutation" in asked:
        found.append("permutation")
    if len(found) > 1:
        raise PlanError(
            "threats: some attacks ask whose data shift and some who clients are, and each "
            "question has a control of its own: make two plans"
        )
    return found[0] if found else None


def controls(plan: Plan) -> tuple[bool, ...]:
    """For each run of an arm under a seed, whether it is the control: the first is not."""
    return (False,) if control_of(plan) is None else (False, True)


# Any: a question has claims of its own.
def listens(question: Question[Any], is_control: bool) -> bool:
    """Whether attacks listen to such a run: a control tells only of what it controls."""
    return not is_control or question.control is not None


def rounds_alone(
    threat: ThreatPlan, question: Question[Any], rounds: Sequence[int]
) -> tuple[int, ...]:
    """Which of these rounds are listened to one by one besides, in order.

    None where one round alone says nothing, as of a shift; and what a round tells of a person
    is asked by a threat with a pseudonym a round, where attackers learn from all of them.
    """
    if not threat.by_round or question.takes_all_rounds:
        return ()
    return tuple(rounds) if threat.by_round is True else spread(rounds, threat.by_round)


def refuse_strangers(plan: Plan, parties: Sequence[Party]) -> None:
    """Refuse observers who take no part: they hear nothing, as if nothing leaked.

    Raises:
        PlanError: if a threat names one.

    """
    known = sorted(parties, key=by_number)
    for number, threat in enumerate(plan.threats):
        for observer in threat.listeners:
            if observer not in known:
                raise PlanError(
                    f"threats.{number}.observers: {observer} takes no part in the run: name "
                    f"some of {', '.join(known)}"
                )


def pieces(plan: Plan) -> int:
    """How many pieces of work the audit of a plan's own federations is made of."""
    every = [
        rounds + cells(plan, rounds, is_control)
        for rounds in map(plan.rounds_of, plan.arms)
        for is_control in controls(plan)
    ]
    return len(plan.seeds) * sum(every)


def cells(plan: Plan, rounds: int, is_control: bool) -> int:
    """How many cells there are for one run of so many rounds."""
    return sum(
        1 + len(rounds_alone(threat, question_of(attack), range(rounds)))
        for threat in plan.threats
        for attack in threat.attacks
        if listens(question_of(attack), is_control)
    )
