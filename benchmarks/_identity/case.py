"""A federation of people, who listens to it, and what figures are to reach."""

from dataclasses import dataclass

from _identity.bars import Bar
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan


@dataclass(frozen=True, slots=True)
class Case:
    """A federation of people, who listens to it, and what figures are to reach.

    Args:
        about: in words.
        data: of the plan.
        training: of the plan.
        threats: of the plan.
        seeds: federations, unless the command line says otherwise.
        bars: to be reached.
        arms: with defenses.

    """

    about: str
    data: DataPlan
    training: TrainingPlan
    threats: tuple[ThreatPlan, ...]
    seeds: int
    bars: tuple[Bar, ...] = ()
    arms: tuple[ArmPlan, ...] = ()

    def plan(self, seeds: tuple[int, ...]) -> Plan:
        """The audit of some seeds."""
        return Plan(
            title=f"Who sent this? {self.about}",
            seeds=seeds,
            data=self.data,
            training=self.training,
            arms=self.arms,
            threats=self.threats,
        )
