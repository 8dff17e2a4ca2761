"""Figure 13: ResNet18 and VGG16, with Tables IX, X, XII and XIII."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.learning.model import Model
from overheard.learning.models.resnet18 import ResNet18
from overheard.learning.models.vgg16 import Vgg16
from overheard.plans.plan import Plan
from overheard_studies.decaf.benchmark import CIFAR10, FER2013, DecafBenchmark
from overheard_studies.decaf.by_user import l1_by_user
from overheard_studies.decaf.differences import COMMON
from overheard_studies.decaf.plans import DecafSize, build_plan, describe_setting
from overheard_studies.decaf.published_scores import mean_published_score
from overheard_studies.decaf.published_users import published_tables
from overheard_studies.decaf.scores import (
    ATTACK,
    DISTANCES,
    NULL_CLASS_SCORES,
    PUBLISHED_DECAF,
    better_direction,
    value_name,
)
from overheard_studies.estimates import (
    FindingFilter,
    find_best_round,
    mean_score,
    reproduced_value,
)
from overheard_studies.experiment import Experiment
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns

FULL = DecafSize(rounds=3, seeds=(0, 1), examples=200, auxiliary=20)
REDUCED = DecafSize(rounds=1, seeds=(0,), examples=50, auxiliary=5, test=100)


@final
@dataclass(frozen=True, slots=True)
class DeepNetwork:
    """One network on one data set, and the paper's table of Decaf's claims about its users."""

    benchmark: DecafBenchmark
    model: Model
    table: str

    @property
    def key(self) -> str:
        """Name in the keys of values and in folders."""
        return f"{self.benchmark.source.name}_{self.model.name}"


NETWORKS = (
    DeepNetwork(FER2013, ResNet18(), "table9"),
    DeepNetwork(FER2013, Vgg16(), "table10"),
    DeepNetwork(CIFAR10, ResNet18(), "table12"),
    DeepNetwork(CIFAR10, Vgg16(), "table13"),
)


@final
@dataclass(frozen=True, slots=True)
class DeepNetworksExperiment(Experiment):
    """The attack on networks that are deeper than the paper's own.

    Args:
        networks: networks with their tables.
        full: size of a full run.
        reduced: size of a quick run.
        name: name of the figure.

    """

    networks: tuple[DeepNetwork, ...] = NETWORKS
    full: DecafSize = FULL
    reduced: DecafSize = REDUCED
    name: str = "figure13"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return "Distances on ResNet18 and VGG16"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        notes = " ".join(
            f"{one.name}: {one.note}"
            for one in dict.fromkeys(n.benchmark for n in self.networks)
        )
        return (
            f"{COMMON} {notes} Both networks have group norm instead of batch norm, whose "
            "running statistics are not weights. VGG16 has no dropout. Users are smaller and "
            "auxiliary examples fewer than elsewhere, since one step takes all of a user's "
            "examples at once. It is lost which table of each pair belongs to which network. "
            "The first is assumed to be ResNet18, as its distances are the smaller ones and "
            "the text says that they grow with the network. The round is the best one, chosen "
            "with the ground truth."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per network and data set."""
        size = self.reduced if quick else self.full
        return {
            one.key: build_plan(one.benchmark, size, (PUBLISHED_DECAF,), model=one.model)
            for one in self.networks
        }

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return means at the best round, then L1 by user."""
        run, full = runs.plans, self.plans(quick=False)
        values = []
        for one in self.networks:
            if one.key not in runs.audits:
                continue
            audit, run_plan = runs.audits[one.key], run[one.key]
            best = find_best_round(audit, ATTACK, "l1", range(run_plan.training.rounds))
            best_filter = FindingFilter(ATTACK, (best,))
            description = describe_setting(one.benchmark, run_plan, full[one.key])
            context = f"{description}; {one.model.name}, round {best + 1}"
            users = tuple(
                user.reordered(one.benchmark.label_columns)
                for user in published_tables()[one.table]
            )
            values += [
                reproduced_value(
                    f"{one.key}_{value_name(score)}",
                    context,
                    mean_score(audit, best_filter, score),
                    mean_published_score(users, score),
                    better_direction(score),
                )
                for score in (*DISTANCES, *NULL_CLASS_SCORES)
            ]
            values += l1_by_user(audit, best_filter, users, context, f"{one.key}_")
        return tuple(values)
