"""Figures 9 and 10: Decaf without one of its steps, with Tables XIV and XV."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.papers.decaf.benchmark import MNIST, DecafBenchmark
from overheard.papers.decaf.by_user import l1_by_user
from overheard.papers.decaf.differences import common
from overheard.papers.decaf.plans import DecafSize, plan, setting
from overheard.papers.decaf.printed import printed_mean
from overheard.papers.decaf.scores import DISTANCES
from overheard.papers.decaf.users import tables
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.reading import ReadingPlace, best_round, figure, mean
from overheard.papers.runs import Runs
from overheard.plans.plan import Plan
from overheard.plans.plugin_field import plugin_label
from overheard.questions.label_shares.attacks.decaf import Decaf

WHOLE = Decaf()


FULL = DecafSize(rounds=5, seeds=(0, 1, 2, 3, 4))
REDUCED = DecafSize(rounds=5, seeds=(0,))


@final
@dataclass(frozen=True, slots=True)
class AblationExperiment(Experiment):
    """The attack without one step, compared with the whole attack on the same run.

    Args:
        name: name of the figure.
        without: the step that is ablated, in words.
        attack: the attack without the step.
        table: the paper's table of the attack without the step.
        benchmark: data set and users.
        full: size of a full run.
        reduced: size of a quick run.

    """

    name: str
    without: str
    attack: Decaf
    table: str
    benchmark: DecafBenchmark = MNIST
    full: DecafSize = FULL
    reduced: DecafSize = REDUCED

    @property
    def title(self) -> str:
        """Title of the figure."""
        return f"Decaf without {self.without}, {self.benchmark.name}"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common(self.benchmark)} The round is the best one of the whole attack, chosen "
            "with the ground truth; the paper does not say which round it uses."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan with both attacks."""
        size = self.reduced if quick else self.full
        return {"audit": plan(self.benchmark, size, (WHOLE, self.attack))}

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Return each distance with and without the step, then L1 by user without it."""
        run, full = runs.plans["audit"], self.plans(quick=False)["audit"]
        audit, users = runs.audits["audit"], tables()[self.table]
        best = best_round(audit, plugin_label(WHOLE), "l1", range(run.training.rounds))
        context = f"{setting(self.benchmark, run, full)}; round {best + 1}"
        without = ReadingPlace(plugin_label(self.attack), (best,))
        values = []
        for distance in DISTANCES:
            values += [
                figure(
                    f"mean_{distance}",
                    f"{context}; without {self.without}",
                    mean(audit, without, distance),
                    printed_mean(users, distance),
                    "lower",
                ),
                figure(
                    f"whole_mean_{distance}",
                    f"{context}; the whole attack",
                    mean(audit, ReadingPlace(plugin_label(WHOLE), (best,)), distance),
                    printed_mean(self.benchmark.users, distance),
                    "lower",
                ),
            ]
        values += l1_by_user(audit, without, users, f"{context}; without {self.without}")
        return tuple(values)
