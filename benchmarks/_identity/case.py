"""The contract of a case of the identity benchmark."""

from dataclasses import dataclass

from _identity.bars import Bar
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan, TrainingPlan


@dataclass(frozen=True, slots=True)
class Case:
    """A federation of known users, with threats and bars.

    Args:
        about: description.
        data: data of the plan.
        training: training of the plan.
        threats: threats of the plan.
        seeds: default number of seeds.
        bars: required results.
        arms: arms with defenses.

    """

    about: str
    data: DataPlan
    training: TrainingPlan
    threats: tuple[ThreatPlan, ...]
    seeds: int
    bars: tuple[Bar, ...] = ()
    arms: tuple[ArmPlan, ...] = ()

    def plan(self, seeds: tuple[int, ...]) -> Plan:
        """Return the plan of some seeds."""
        return Plan(
            title=f"Who sent this? {self.about}",
            seeds=seeds,
            data=self.data,
            training=self.training,
            arms=self.arms,
            threats=self.threats,
        )
