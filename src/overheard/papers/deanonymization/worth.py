"""What the global model of a federation is worth on the test set."""

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
from overheard.papers.deanonymization.world import IdentityScenario, Utility
from overheard.papers.reading import BOOTSTRAP
from overheard.papers.runs import Runs
from overheard.statistics.estimate import Estimate, estimate

TOP = 5


def worth(world: IdentityScenario, task: Task, weights: Weights, test: Examples) -> float:
    """By the world's own measure; higher is better but for an absolute error."""
    build = partial(world.model.build, task)
    match world.utility:
        case "top5":
            return top_k_accuracy(build, weights, test, TOP)
        case "absolute_error":
            return mean_absolute_error(build, weights, test)
        case "accuracy":
            return top_k_accuracy(build, weights, test, 1)


def guessed(utility: Utility, labels: Int[Tensor, " examples"], classes: int) -> float:
    """What a label drawn by chance, all alike, is expected to get."""
    match utility:
        case "top5":
            return TOP / classes
        case "accuracy":
            return 1 / classes
        case "absolute_error":
            distances = (labels[:, None] - torch.arange(classes)).abs()
            return float(distances.double().mean())


def test_of(world: IdentityScenario, dataset: Dataset) -> Examples:
    """The first examples of a fixed shuffle of the test part, as many as the world takes."""
    order = torch.randperm(
        len(dataset.test), generator=BOOTSTRAP.child("test", world.key).generator()
    )
    return dataset.test.take(order[: world.test])


def worth_of_arm(
    runs: Runs, name: str, arm: str, world: IdentityScenario, dataset: Dataset
) -> tuple[float, ...]:
    """What the last global model of an arm is worth, seed by seed."""
    test = test_of(world, dataset)
    return tuple(
        worth(world, dataset.task, last_weights(runs, name, arm, seed), test)
        for seed in runs.plans[name].seeds
    )


def last_weights(runs: Runs, name: str, arm: str, seed: int) -> Weights:
    """The global model after the last round."""
    told = runs.transcript(name, arm, seed).seen_by(SERVER).broadcasts()
    return told[max(told)]


def mean_of_seeds(values: Sequence[float]) -> Estimate:
    """The mean of one number a seed."""
    return estimate(np.array(values), np.arange(len(values)), BOOTSTRAP)
