"""The utility of a federation's global model on the test set."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.parties import SERVER
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.learning.evaluate import mean_absolute_error, top_k_accuracy
from overheard.statistics.estimate import Estimate
from overheard.statistics.run_means import estimate_mean
from overheard_studies.deanonymization.scenarios import IdentityScenario, UtilityMeasure
from overheard_studies.estimates import BOOTSTRAP_SEED
from overheard_studies.runs import ExperimentRuns

TOP_LABELS = 5
"""Number of most probable labels that count under the measure "top5"."""


def measure_utility(
    scenario: IdentityScenario, task: Task, weights: Weights, test: Examples
) -> float:
    """Measure the utility of a model by the scenario's measure.

    Higher is better, except for an absolute error.
    """
    build = partial(scenario.model.build, task)
    match scenario.utility:
        case "top5":
            return top_k_accuracy(build, weights, test, TOP_LABELS)
        case "absolute_error":
            return mean_absolute_error(build, weights, test)
        case "accuracy":
            return top_k_accuracy(build, weights, test, 1)


def chance_utility(
    utility: UtilityMeasure, labels: Int[Tensor, " examples"], classes: int
) -> float:
    """Return the expected utility of a label drawn uniformly at random."""
    match utility:
        case "top5":
            return TOP_LABELS / classes
        case "accuracy":
            return 1 / classes
        case "absolute_error":
            distances = (labels[:, None] - torch.arange(classes)).abs()
            return float(distances.double().mean())


def select_test_examples(scenario: IdentityScenario, dataset: Dataset) -> Examples:
    """Select as many test examples as the scenario uses, by a fixed shuffle."""
    order = torch.randperm(
        len(dataset.test), generator=BOOTSTRAP_SEED.child("test", scenario.key).generator()
    )
    return dataset.test.take(order[: scenario.test])


def measure_arm_utilities(
    runs: ExperimentRuns, name: str, arm: str, scenario: IdentityScenario, dataset: Dataset
) -> tuple[float, ...]:
    """Measure the utility of an arm's last global model, one value per seed.

    `name` is the sub-folder of the audit.
    """
    test = select_test_examples(scenario, dataset)
    return tuple(
        measure_utility(scenario, dataset.task, final_weights(runs, name, arm, seed), test)
        for seed in runs.plans[name].seeds
    )


def final_weights(runs: ExperimentRuns, name: str, arm: str, seed: int) -> Weights:
    """Return the global model after the last round."""
    broadcasts = runs.transcript(name, arm, seed).seen_by(SERVER).broadcasts()
    return broadcasts[max(broadcasts)]


def mean_over_seeds(values: Sequence[float]) -> Estimate:
    """Return the mean of the values, one per seed, with its interval."""
    return estimate_mean(np.array(values), np.arange(len(values)))
