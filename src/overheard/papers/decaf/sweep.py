"""Figures 7 and 8: the auxiliary examples, and the neurons before the last layer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.learning.models.decaf_conv2 import DecafConv2
from overheard.papers.decaf.benchmark import FASHION_MNIST, MNIST, DecafBenchmark
from overheard.papers.decaf.differences import common
from overheard.papers.decaf.plans import DecafSize, plan, setting
from overheard.papers.decaf.scores import ATTACK, DISTANCES
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.reading import figure, mean_over_rounds
from overheard.papers.runs import Runs
from overheard.plans.plan import Plan
from overheard.questions.label_shares.attacks.decaf import Decaf

FULL = DecafSize(rounds=10, seeds=(0, 1, 2))
REDUCED = DecafSize(rounds=3, seeds=(0,))


@final
@dataclass(frozen=True, slots=True)
class AuxiliaryExperiment(Experiment):
    """The attack by number of auxiliary examples per class.

    Args:
        benchmark: data set and users.
        numbers: numbers of auxiliary examples of each class.
        full: size of a full run.
        reduced: size of a quick run.
        name: name of the figure.

    """

    benchmark: DecafBenchmark = FASHION_MNIST
    numbers: tuple[int, ...] = (2, 5, 10, 20, 30)
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
        return f"{common(self.benchmark)} The figure's values are lost."

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per number, which also changes which examples the users get."""
        size = self.reduced if quick else self.full
        return {
            f"auxiliary_{number}": plan(self.benchmark, size, (Decaf(),), auxiliary=number)
            for number in self.numbers
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
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
            f"{common(self.benchmark)} The paper's four widths and the figure's values are "
            "lost; the widths are this project's choice."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per width."""
        size = self.reduced if quick else self.full
        return {
            f"neurons_{width}": plan(
                self.benchmark, size, (Decaf(),), model=DecafConv2(hidden=width)
            )
            for width in self.widths
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Return each distance, averaged over users and rounds."""
        return _averages(self.benchmark, runs, self.plans(quick=False))


def _averages(
    benchmark: DecafBenchmark, runs: Runs, full: Mapping[str, Plan]
) -> tuple[Figure, ...]:
    return tuple(
        figure(
            f"mean_{distance}_{key}",
            f"{setting(benchmark, one, full[key])}; {key.replace('_', ' ')}, mean over "
            "the rounds",
            mean_over_rounds(runs.audits[key], ATTACK, range(one.training.rounds), distance),
            None,
            "lower",
        )
        for key, one in runs.plans.items()
        for distance in DISTANCES
    )
