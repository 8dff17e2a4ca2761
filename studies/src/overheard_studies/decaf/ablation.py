"""Figures 9 and 10: Decaf without one of its steps, with Tables XIV and XV."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.plans.plan import Plan
from overheard.plans.plugin_field import plugin_label
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard_studies.decaf.benchmark import MNIST, DecafBenchmark
from overheard_studies.decaf.by_user import l1_by_user
from overheard_studies.decaf.differences import common_differences
from overheard_studies.decaf.plans import DecafSize, build_plan, describe_setting
from overheard_studies.decaf.published_scores import mean_published_score
from overheard_studies.decaf.published_users import published_tables
from overheard_studies.decaf.scores import ATTACK, DISTANCES, PUBLISHED_DECAF
from overheard_studies.estimates import (
    FindingFilter,
    find_best_round,
    mean_score,
    reproduced_value,
)
from overheard_studies.experiment import Experiment
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns

FULL = DecafSize(rounds=5, seeds=(0, 1, 2, 3, 4))
REDUCED = DecafSize(rounds=5, seeds=(0,))


@final
@dataclass(frozen=True, slots=True)
class AblationExperiment(Experiment):
    """The attack without one step, compared with the whole attack on the same run.

    Args:
        name: name of the figure.
        ablated_step: the step that is ablated, in words.
        attack: the attack without the step.
        table: the paper's table of the attack without the step.
        benchmark: data set and users.
        full: size of a full run.
        reduced: size of a quick run.

    """

    name: str
    ablated_step: str
    attack: Decaf
    table: str
    benchmark: DecafBenchmark = MNIST
    full: DecafSize = FULL
    reduced: DecafSize = REDUCED

    @property
    def title(self) -> str:
        """Title of the figure."""
        return f"Decaf without {self.ablated_step}, {self.benchmark.name}"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common_differences(self.benchmark)} The round is the best one of the whole "
            "attack, chosen with the ground truth; the paper does not say which round it uses."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan with both attacks."""
        size = self.reduced if quick else self.full
        return {"audit": build_plan(self.benchmark, size, (PUBLISHED_DECAF, self.attack))}

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return each distance with and without the step, then L1 by user without it."""
        run, full = runs.plans["audit"], self.plans(quick=False)["audit"]
        audit, users = runs.audits["audit"], published_tables()[self.table]
        best = find_best_round(audit, ATTACK, "l1", range(run.training.rounds))
        context = f"{describe_setting(self.benchmark, run, full)}; round {best + 1}"
        without = FindingFilter(plugin_label(self.attack), (best,))
        values = []
        for distance in DISTANCES:
            values += [
                reproduced_value(
                    f"mean_{distance}",
                    f"{context}; without {self.ablated_step}",
                    mean_score(audit, without, distance),
                    mean_published_score(users, distance),
                    "lower",
                ),
                reproduced_value(
                    f"whole_mean_{distance}",
                    f"{context}; the whole attack",
                    mean_score(audit, FindingFilter(ATTACK, (best,)), distance),
                    mean_published_score(self.benchmark.users, distance),
                    "lower",
                ),
            ]
        values += l1_by_user(audit, without, users, f"{context}; without {self.ablated_step}")
        return tuple(values)
