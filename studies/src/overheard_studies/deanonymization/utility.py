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
from overheard.plans.plan import UNDEFENDED, Plan
from overheard.questions.identity.attacks.reidentify_knn import ReidentifyKnn
from overheard_studies.deanonymization.differences import common_differences
from overheard_studies.deanonymization.model_utility import (
    chance_utility,
    mean_over_seeds,
    measure_arm_utilities,
    measure_utility,
    select_test_examples,
)
from overheard_studies.deanonymization.plans import (
    build_known_user_settings,
    build_plan,
    describe_setting,
    threat_per_update,
)
from overheard_studies.deanonymization.published_numbers import published_utility
from overheard_studies.deanonymization.scenarios import (
    QUICK_SCENARIO,
    SCENARIOS,
    IdentityScenario,
)
from overheard_studies.estimates import reproduced_value
from overheard_studies.experiment import Experiment
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns

PAPER_PRIORS: tuple[PriorKind, ...] = ("random", "chronological")


@final
@dataclass(frozen=True, slots=True)
class UtilityExperiment(Experiment):
    """The last global model of each federation, and one trained centrally on all its data.

    Args:
        scenarios: data sets with their federations.
        reduced: the same for a quick run.
        priors: how users' data are split into prior and private data.
        name: name of the table.

    """

    scenarios: tuple[IdentityScenario, ...] = SCENARIOS
    reduced: tuple[IdentityScenario, ...] = (QUICK_SCENARIO,)
    priors: tuple[PriorKind, ...] = PAPER_PRIORS
    name: str = "table2"

    @property
    def title(self) -> str:
        """Title of the table."""
        return "Utility of the model: federated, centralized, and chance"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common_differences(self.scenarios)} The centralized model starts from the same "
            "weights. It trains at the same rate and batch size on the examples of all "
            "devices, for as "
            "many passes as a device makes in the federation on average. The paper's "
            "nearest-neighbour models are left out. The measures are the top-5 accuracy of "
            "the next word, the accuracy of characters, and the mean absolute error of the "
            "expected rating. For characters the paper has the average precision of several "
            "labels; it has five ratings, here there are three. Chance is a label drawn "
            "uniformly at random."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set and prior, with the cheapest attack."""
        return {
            f"{scenario.key}_{prior}": build_plan(
                scenario,
                build_known_user_settings(prior),
                (threat_per_update((ReidentifyKnn(updates="shadow", layer=scenario.layer),)),),
            )
            for scenario in (self.reduced if quick else self.scenarios)
            for prior in self.priors
        }

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return the three utilities of each data set and prior."""
        full = self.plans(quick=False)
        return tuple(
            one
            for name, scenario, prior in self._finished(runs)
            for one in _utility_values(
                runs,
                name,
                scenario,
                prior,
                describe_setting(scenario, runs.plans[name], full.get(name)),
            )
        )

    def _finished(
        self, runs: ExperimentRuns
    ) -> Iterator[tuple[str, IdentityScenario, PriorKind]]:
        for scenario in self.scenarios:
            for prior in self.priors:
                if f"{scenario.key}_{prior}" in runs.audits:
                    yield f"{scenario.key}_{prior}", scenario, prior


def _utility_values(
    runs: ExperimentRuns, name: str, scenario: IdentityScenario, prior: PriorKind, context: str
) -> tuple[ReproducedValue, ...]:
    run = runs.plans[name]
    dataset = load_data(run, runs.resources)
    test = select_test_examples(scenario, dataset)
    better: Better = "lower" if scenario.utility == "absolute_error" else "higher"
    with one_thread():
        values = [
            measure_utility(
                scenario, dataset.task, _centralised(runs, name, dataset, seed), test
            )
            for seed in run.seeds
        ]
    measured = scenario.utility.replace("_", " ")
    chance = chance_utility(scenario.utility, test.labels, dataset.task.classes)
    return (
        reproduced_value(
            f"{name}_federated",
            f"{context}; {measured} of the last global model",
            mean_over_seeds(measure_arm_utilities(runs, name, UNDEFENDED, scenario, dataset)),
            published_utility(scenario.paper, prior, "federated"),
            better,
        ),
        reproduced_value(
            f"{name}_centralised",
            f"{context}; {measured} of a model trained centrally",
            mean_over_seeds(values),
            published_utility(scenario.paper, prior, "centralised"),
            better,
        ),
        ReproducedValue(
            f"{name}_chance",
            f"{context}; {measured} of a random label",
            chance,
            None,
            None,
            published_utility(scenario.paper, prior, "chance"),
            better,
        ),
    )


def _centralised(runs: ExperimentRuns, name: str, dataset: Dataset, seed: int) -> Weights:
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
