"""Counts of virtual clients and rounds, and the plan that has them."""

from dataclasses import dataclass, fields, replace
from typing import Any, final

from overheard.core.attack import Attack
from overheard.core.errors import PlanError
from overheard.plans.plan import Plan, ThreatPlan, check_unique_threats

ROUNDS_FIELD = "most_rounds"
"""The setting of an attack that limits its rounds."""


@final
@dataclass(frozen=True, slots=True)
class SimulationCounts:
    """The most virtual clients of a threat, and the most rounds of attacks that train them.

    Args:
        clients: number of virtual clients, where the plan has more.
        rounds: number of rounds, where the attack has more.

    """

    clients: int
    rounds: int

    def clients_of(self, planned: int) -> int:
        """Return the number of virtual clients in place of that of the plan."""
        return min(planned, self.clients)

    # Any: an attack answers a question of its own.
    def attack(self, attack: Attack[Any]) -> Attack[Any]:
        """Return the attack with the rounds of these counts, if it trains virtual clients."""
        planned = limited_rounds(attack)
        if planned is None or planned <= self.rounds:
            return attack
        # Any: every attack is a dataclass, which the contract of attacks does not say.
        settings: Any = attack
        changed: Attack[Any] = replace(settings, **{ROUNDS_FIELD: self.rounds})
        return changed

    def plan(self, plan: Plan) -> Plan:
        """Return the plan with these counts.

        Raises:
            PlanError: if two threats would then run the same attack.

        """
        threats = tuple(map(self._threat, plan.threats))
        try:
            check_unique_threats(threats)
        except ValueError as error:
            raise PlanError(
                f"with {self.clients} virtual clients and {self.rounds} rounds, two threats "
                f"of the plan would be the same: {error}"
            ) from None
        return plan.model_copy(update={"threats": threats})

    def _threat(self, threat: ThreatPlan) -> ThreatPlan:
        if not simulates_clients(threat):
            return threat
        clients = self.clients_of(threat.virtual.clients)
        changes = {
            "attacks": tuple(map(self.attack, threat.attacks)),
            "virtual": threat.virtual.model_copy(update={"clients": clients}),
        }
        return threat.model_copy(update=changes)


# Any: an attack answers a question of its own.
def trains_virtual_clients(attack: Attack[Any]) -> bool:
    """Return whether an attack trains virtual clients, whose number takes most of its time."""
    return attack.training_source() == "virtual clients"


# Any: an attack answers a question of its own.
def limited_rounds(attack: Attack[Any]) -> int | None:
    """Return the most rounds of an attack that trains virtual clients; None = no limit."""
    if not trains_virtual_clients(attack):
        return None
    # Any: every attack is a dataclass, which the contract of attacks does not say.
    settings: Any = attack
    has_limit = ROUNDS_FIELD in {one.name for one in fields(settings)}
    return int(getattr(attack, ROUNDS_FIELD)) if has_limit else None


def simulates_clients(threat: ThreatPlan) -> bool:
    """Return whether an attack of the threat trains virtual clients."""
    return any(map(trains_virtual_clients, threat.attacks))


def is_reduced(plan: Plan, other: Plan) -> bool:
    """Return whether another plan is this one with counts, none above those of this one.

    The text on the release of a report may differ too, which changes no result.
    """
    simulating = [threat for threat in other.threats if simulates_clients(threat)]
    limits = [limited_rounds(attack) for threat in simulating for attack in threat.attacks]
    counts = SimulationCounts(
        max((threat.virtual.clients for threat in simulating), default=1),
        max((limit for limit in limits if limit is not None), default=1),
    )
    update = {"threats": tuple(map(counts._threat, plan.threats)), "release": other.release}
    return plan.model_copy(update=update).toml() == other.toml()
