"""Of what pieces of work an audit is made: which runs there are, and who listens to what."""

from collections.abc import Sequence
from typing import Any

from overheard.core.attack import Attack
from overheard.core.errors import PlanError
from overheard.plans.personal import PERSONAL
from overheard.plans.plan import Plan, ThreatPlan
from overheard.questions.shift.claim import Shift
from overheard.statistics.spread import spread


def controls(plan: Plan) -> tuple[bool, ...]:
    """For each run of an arm under a seed, whether it is the control: the first is not.

    There is one where some client shifts and some attack asks who does. In it the same clients
    exchange their examples in the same rounds, and nothing shifts; up to the first shift it is
    the same run. And there is one where some attack asks who clients are: in it their examples
    were dealt anew among them by chance.

    Raises:
        PlanError: if both are asked: what controls the one tells of the other nothing.

    """
    shifts = any(not shift.shift.is_exchange for shift in plan.data.shifts)
    asked = any(
        _asks_for_shifts(attack) for threat in plan.threats for attack in threat.attacks
    )
    if shifts and asked and asks_who(plan):
        raise PlanError(
            "threats: some attacks ask whose data shift and some who clients are, and each "
            "question has a control of its own: make two plans"
        )
    return (False, True) if (shifts and asked) or asks_who(plan) else (False,)


def asks_who(plan: Plan) -> bool:
    """Whether clients are persons of a plan, and some attack asks about the person."""
    return plan.data.people is not None and any(
        _asks_who(attack) for threat in plan.threats for attack in threat.attacks
    )


# Any: an attack answers a question of its own.
def listens(attack: Attack[Any], is_control: bool) -> bool:
    """Whether an attack listens to such a run: a control tells of shifts and persons alone."""
    return _asks_for_shifts(attack) or _asks_who(attack) or not is_control


def rounds_alone(
    threat: ThreatPlan, attack: Attack[Any], rounds: Sequence[int]
) -> tuple[int, ...]:
    """Which of these rounds are listened to one by one besides, in order.

    One alone can tell of no shift; and what a round tells of a person is asked by a threat
    with a pseudonym a round, where attackers learn from all of them.
    """
    if not threat.by_round or _asks_for_shifts(attack) or _asks_who(attack):
        return ()
    return tuple(rounds) if threat.by_round is True else spread(rounds, threat.by_round)


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
        1 + len(rounds_alone(threat, attack, range(rounds)))
        for threat in plan.threats
        for attack in threat.attacks
        if listens(attack, is_control)
    )


def _asks_for_shifts(attack: Attack[Any]) -> bool:
    return attack.answers is Shift


def _asks_who(attack: Attack[Any]) -> bool:
    return issubclass(attack.answers, PERSONAL)
