"""Canaries whose gradients are crafted, in the steps of clients."""

from math import isfinite

import pytest
import torch

from overheard.core.algorithm.crafted_gradients import (
    PLAIN_NORM,
    CraftedRows,
    along_crafted,
    sum_of_crafted,
)
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.recipe import PrivateSteps, Recipe
from overheard.learning.example_gradients import flatten_weights
from overheard.learning.train import Engine, train_cohort
from overheard.learning.training_job import ClientTask
from tests.learning.cases import MLP, SEED, TABLE, largest_difference, pool_of, start_of

LIKE = {"b": torch.zeros(2, 3), "a": torch.zeros(5)}


def test_each_canary_has_coordinates_of_its_own() -> None:
    for number in range(5):
        gradient = flatten_weights(sum_of_crafted([number], 5, LIKE))
        assert float(gradient.norm()) == pytest.approx(1.0)
        found = along_crafted(gradient, 5)
        assert found.tolist() == pytest.approx([float(one == number) for one in range(5)])
        # 11 coordinates are 2 for each of 5 canaries; all entries are alike in magnitude.
        assert gradient.nonzero().flatten().tolist() == [2 * number, 2 * number + 1]
    with pytest.raises(PlanError, match="12 canaries with crafted gradients"):
        sum_of_crafted([0], 12, LIKE)


def trained(
    pool: Examples, recipe: Recipe, crafted: CraftedRows | None, engine: Engine = "auto"
) -> Weights:
    client = ClientTask("client/0", torch.arange(len(pool)), crafted=crafted)
    (result,) = train_cohort(
        MLP, start_of(MLP), pool, [client], recipe, seed=SEED, round=0, engine=engine
    )
    assert isfinite(result.loss)
    return result.delta


@pytest.mark.parametrize("is_private", [True, False])
def test_a_crafted_gradient_takes_the_place_of_the_records_own(is_private: bool) -> None:
    # One step on all examples: the sum of the others' gradients, and one crafted one.
    private = PrivateSteps(0.5, 0.0, batches=1, sampling="shuffled") if is_private else None
    pool = pool_of(TABLE, torch.float64).take(torch.arange(4))
    recipe = Recipe(rate=1.0, epochs=1, batch=4, private_steps=private)
    numbers = torch.tensor([-1, 7, -1, -1])
    found = trained(pool, recipe, CraftedRows(numbers, 10))
    others = trained(pool.take(torch.tensor([0, 2, 3])), recipe, None, "sequential")
    crafted = sum_of_crafted([7], 10, start_of(MLP))
    norm = 0.5 if is_private else PLAIN_NORM
    expected = {name: 3 / 4 * one - norm / 4 * crafted[name] for name, one in others.items()}
    assert largest_difference(found, expected) < 1e-6
    # A batch of canaries alone has no gradient of others.
    alone = trained(pool.take(torch.tensor([1])), recipe, CraftedRows(torch.tensor([7]), 10))
    expected = {name: -norm * one for name, one in crafted.items()}
    assert largest_difference(alone, expected) < 1e-4
