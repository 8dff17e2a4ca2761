"""Figure 14 and Table XI: Decaf against dropout and noise, and their cost in accuracy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from overheard.defenses.dropout import Dropout
from overheard.defenses.local_dp import LocalDp
from overheard.plans.plan import UNDEFENDED, ArmPlan, Plan
from overheard_studies.decaf.benchmark import MNIST, DecafBenchmark
from overheard_studies.decaf.differences import common_differences
from overheard_studies.decaf.plans import DecafSize, build_plan, describe_setting
from overheard_studies.decaf.published_users import published_accuracies
from overheard_studies.decaf.scores import (
    ATTACK,
    DISTANCES,
    NULL_CLASS_SCORES,
    PUBLISHED_DECAF,
    better_direction,
    value_name,
)
from overheard_studies.estimates import mean_accuracy, mean_score_over_rounds, reproduced_value
from overheard_studies.experiment import Experiment
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns

FULL = DecafSize(rounds=20, seeds=(0, 1, 2))
REDUCED = DecafSize(rounds=4, seeds=(0,))


@final
@dataclass(frozen=True, slots=True)
class DefendedDecafExperiment(Experiment):
    """The attack on the same users under each defense, and the accuracy of the model.

    Args:
        benchmark: data set and users.
        multipliers: multipliers of the noise, as Table XI has them.
        clip: L2 norm to which an update is clipped before noise.
        full: size of a full run.
        reduced: size of a quick run.
        name: name of the figure.

    """

    has_separate_arms: ClassVar[bool] = True

    benchmark: DecafBenchmark = MNIST
    multipliers: tuple[float, ...] = (0.1, 0.25, 1.0, 4.0, 16.0)
    clip: float = 1.0
    full: DecafSize = FULL
    reduced: DecafSize = REDUCED
    name: str = "figure14"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return f"Decaf against dropout and local differential privacy, {self.benchmark.name}"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common_differences(self.benchmark)} The paper does not say where dropout is "
            "placed (here: "
            "before the last layer, rate 0.5). Nor does it say how the noise is added, to "
            "what an update is clipped, or after how many rounds the accuracy is measured. "
            "Here noise is added to each user's whole update, clipped to an L2 norm of "
            f"{self.clip:g}. This hides a user and not a record: at the same multiplier it is "
            "far stronger than the noise of DP-SGD (Abadi et al. 2016, cited by the paper). "
            "Accuracies are therefore far below those of Table XI, and no epsilon can be "
            "compared. The accuracies here are those of the last round's broadcast, after few "
            "rounds of one step each; the paper's are those of a converged model. Distances "
            "are means over all rounds."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan with one arm per defense."""
        arms = (
            ArmPlan(name=UNDEFENDED),
            ArmPlan(name="dropout", defenses=(Dropout(),)),
            *(
                ArmPlan(
                    name=f"local DP {multiplier:g}",
                    defenses=(LocalDp(clip=self.clip, noise_multiplier=multiplier),),
                )
                for multiplier in self.multipliers
            ),
        )
        size = self.reduced if quick else self.full
        return {"audit": build_plan(self.benchmark, size, (PUBLISHED_DECAF,), arms=arms)}

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return the distances, the null-class scores and the accuracy of each arm."""
        audit = runs.audits["audit"]
        run, full = runs.plans["audit"], self.plans(quick=False)["audit"]
        context, rounds = describe_setting(self.benchmark, run, full), run.training.rounds
        values = []
        for arm in run.arms:
            key = arm.name.replace(" ", "_").lower()
            values += [
                reproduced_value(
                    f"{key}_{value_name(score)}",
                    f"{context}; {arm.name}, mean over rounds 1 to {rounds}",
                    mean_score_over_rounds(audit, ATTACK, range(rounds), score, arm.name),
                    None,
                    better_direction(score),
                )
                for score in (*DISTANCES, *NULL_CLASS_SCORES)
            ]
            values.append(
                reproduced_value(
                    f"{key}_accuracy",
                    f"{context}; {arm.name}, the model that round {rounds} broadcasts",
                    mean_accuracy(audit, arm.name, rounds - 1),
                    published_accuracies().get(arm.name),
                    "higher",
                )
            )
        return tuple(values)
