"""Table 2: utility of the federated model, a centralized model and chance."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import final

import torch

from overheard.auditing.inputs import load_data, partition_for_plan
from overheard.core.messages import Weights
from overheard.core.parties import SERVER
from overheard.core.scorer import Better
from overheard.core.seeds import Seed
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import DataPartition
from overheard.data.partition.known_user_settings import PriorKind
from overheard.learning.threads import one_thread
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.papers.deanonymization.differences import common
from overheard.papers.deanonymization.plans import every_update, people, plan, setting
from overheard.papers.deanonymization.printed import utility
from overheard.papers.deanonymization.world import HURRIED, WORLDS, IdentityScenario
from overheard.papers.deanonymization.worth import (
    guessed,
    mean_of_seeds,
    test_of,
    worth,
    worth_of_arm,
)
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.reading import figure
from overheard.papers.runs import Runs
from overheard.plans.plan import UNDEFENDED, Plan
from overheard.questions.identity.attacks.reidentify_knn import ReidentifyKnn

WITHIN: tuple[PriorKind, ...] = ("random", "chronological")


@final
@dataclass(frozen=True, slots=True)
class UtilityExperiment(Experiment):
    """The last global model of each federation, and one trained centrally on all its data.

    Args:
        worlds: data sets with their federations.
        reduced: the same for a quick run.
        priors: how users' data are split into prior and private data.
        name: name of the table.

    """

    worlds: tuple[IdentityScenario, ...] = WORLDS
    reduced: tuple[IdentityScenario, ...] = (HURRIED,)
    priors: tuple[PriorKind, ...] = WITHIN
    name: str = "table2"

    @property
    def title(self) -> str:
        """Title of the table."""
        return "Utility of the model: federated, centralized, and chance"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common(self.worlds)} The centralized model starts from the same weights. It "
            "trains at the same rate and batch size on the examples of all devices, for as "
            "many passes as a device makes in the federation on average. The paper's "
            "nearest-neighbour models are left out. There are three measures: the top-5 "
            "accuracy of the next word, the accuracy of characters (the paper: average "
            "precision of several labels), and the mean absolute error of the expected "
            "rating, of three ratings; the paper has five. Chance is a label drawn uniformly "
            "at random."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set and prior, with the cheapest attack."""
        return {
            f"{scenario.key}_{prior}": plan(
                scenario,
                people(prior),
                (every_update((ReidentifyKnn(updates="shadow", layer=scenario.layer),)),),
            )
            for scenario in (self.reduced if quick else self.worlds)
            for prior in self.priors
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Return the three utilities of each data set and prior."""
        full = self.plans(quick=False)
        return tuple(
            one
            for name, scenario, prior in self._finished(runs)
            for one in _utility_values(
                runs, name, scenario, prior, setting(scenario, runs.plans[name], full.get(name))
            )
        )

    def _finished(self, runs: Runs) -> Iterator[tuple[str, IdentityScenario, PriorKind]]:
        for scenario in self.worlds:
            for prior in self.priors:
                if f"{scenario.key}_{prior}" in runs.audits:
                    yield f"{scenario.key}_{prior}", scenario, prior


def _utility_values(
    runs: Runs, name: str, scenario: IdentityScenario, prior: PriorKind, context: str
) -> tuple[Figure, ...]:
    run = runs.plans[name]
    dataset = load_data(run, runs.resources)
    test = test_of(scenario, dataset)
    better: Better = "lower" if scenario.utility == "absolute_error" else "higher"
    with one_thread():
        values = [
            worth(scenario, dataset.task, _centralised(runs, name, dataset, seed), test)
            for seed in run.seeds
        ]
    measured = scenario.utility.replace("_", " ")
    chance = guessed(scenario.utility, test.labels, dataset.task.classes)
    return (
        figure(
            f"{name}_federated",
            f"{context}; {measured} of the last global model",
            mean_of_seeds(worth_of_arm(runs, name, UNDEFENDED, scenario, dataset)),
            utility(scenario.paper, prior, "federated"),
            better,
        ),
        figure(
            f"{name}_centralised",
            f"{context}; {measured} of a model trained centrally",
            mean_of_seeds(values),
            utility(scenario.paper, prior, "centralised"),
            better,
        ),
        Figure(
            f"{name}_chance",
            f"{context}; {measured} of a random label",
            chance,
            None,
            None,
            utility(scenario.paper, prior, "chance"),
            better,
        ),
    )


def _centralised(runs: Runs, name: str, dataset: Dataset, seed: int) -> Weights:
    """Train a model centrally on all data of the federation's devices, from the same start."""
    run = runs.plans[name]
    partition = partition_for_plan(run, dataset, seed)
    start = runs.transcript(name, UNDEFENDED, seed).seen_by(SERVER).broadcasts()[0]
    training = run.training
    passes = max(1, round(training.rounds * training.participation))
    (trained,) = train_cohort(
        partial(training.model.build, dataset.task),
        start,
        partition.pool,
        [ClientTask("everyone", _all_rows(partition))],
        replace(training.recipe, epochs=passes),
        seed=Seed(seed).child("centralised"),
        round=0,
        workers=1,
    )
    return {name: weights + trained.delta[name] for name, weights in start.items()}


def _all_rows(partition: DataPartition) -> torch.Tensor:
    devices = () if partition.participants is None else partition.participants.shadow_rows
    return torch.cat([*partition.rows[0], *devices])
