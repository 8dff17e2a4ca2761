"""Figures 7 and 8: the auxiliary examples, and the neurons before the last layer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.learning.models.decaf_conv2 import DecafConv2
from overheard.plans.plan import Plan
from overheard_studies.decaf.benchmark import FASHION_MNIST, MNIST, DecafBenchmark
from overheard_studies.decaf.differences import common_differences
from overheard_studies.decaf.plans import DecafSize, build_plan, describe_setting
from overheard_studies.decaf.scores import ATTACK, DISTANCES, PUBLISHED_DECAF
from overheard_studies.estimates import mean_score_over_rounds, reproduced_value
from overheard_studies.experiment import Experiment
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns

FULL = DecafSize(rounds=10, seeds=(0, 1, 2))
REDUCED = DecafSize(rounds=3, seeds=(0,))


@final
@dataclass(frozen=True, slots=True)
class AuxiliaryExperiment(Experiment):
    """The attack by number of auxiliary examples per class.

    Args:
        benchmark: data set and users.
        auxiliary_counts: numbers of auxiliary examples of each class.
        full: size of a full run.
        reduced: size of a quick run.
        name: name of the figure.

    """

    benchmark: DecafBenchmark = FASHION_MNIST
    auxiliary_counts: tuple[int, ...] = (2, 5, 10, 20, 30)
    full: DecafSize = FULL
    reduced: DecafSize = REDUCED
    name: str = "figure7"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return f"Distances by number of auxiliary examples per class, {self.benchmark.name}"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return f"{common_differences(self.benchmark)} The figure's values are lost."

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per number, which also changes which examples the users get."""
        size = self.reduced if quick else self.full
        return {
            f"auxiliary_{number}": build_plan(
                self.benchmark, size, (PUBLISHED_DECAF,), auxiliary=number
            )
            for number in self.auxiliary_counts
        }

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return each distance, averaged over users and rounds."""
        return _averages(self.benchmark, runs, self.plans(quick=False))


@final
@dataclass(frozen=True, slots=True)
class NeuronsExperiment(Experiment):
    """The attack by width of the last layer.

    Args:
        benchmark: data set and users.
        widths: numbers of inputs of the last layer.
        full: size of a full run.
        reduced: size of a quick run.
        name: name of the figure.

    """

    benchmark: DecafBenchmark = MNIST
    widths: tuple[int, ...] = (64, 128, 256, 512)
    full: DecafSize = FULL
    reduced: DecafSize = REDUCED
    name: str = "figure8"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return f"Distances by number of inputs of the last layer, {self.benchmark.name}"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common_differences(self.benchmark)} The paper's four widths and the figure's "
            "values are lost; the widths are this project's choice."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per width."""
        size = self.reduced if quick else self.full
        return {
            f"neurons_{width}": build_plan(
                self.benchmark, size, (PUBLISHED_DECAF,), model=DecafConv2(hidden=width)
            )
            for width in self.widths
        }

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return each distance, averaged over users and rounds."""
        return _averages(self.benchmark, runs, self.plans(quick=False))


def _averages(
    benchmark: DecafBenchmark, runs: ExperimentRuns, full: Mapping[str, Plan]
) -> tuple[ReproducedValue, ...]:
    return tuple(
        reproduced_value(
            f"mean_{distance}_{key}",
            f"{describe_setting(benchmark, one, full[key])}; {key.replace('_', ' ')}, mean "
            "over the rounds",
            mean_score_over_rounds(
                runs.audits[key], ATTACK, range(one.training.rounds), distance
            ),
            None,
            "lower",
        )
        for key, one in runs.plans.items()
        for distance in DISTANCES
    )
