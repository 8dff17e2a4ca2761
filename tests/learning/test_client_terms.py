"""Clients of unequal epochs, and with corrected gradients, train alike in every engine."""

from dataclasses import replace

import pytest
import torch

from overheard.core.recipe import Recipe
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.learning.workers import processes
from tests.learning.cases import (
    CLIENTS,
    MLP,
    SEED,
    TABLE,
    TEXTS,
    WORDS,
    largest_difference,
    plain_loop,
    pool_of,
    same_bits,
    start_of,
)

RECIPE = Recipe(rate=0.1, epochs=3, batch=4, momentum=0.5)

EPOCHS = (5, None, 1, 2)


def members(is_corrected: bool) -> list[ClientTask]:
    """Clients of unequal sizes and epochs; all but one are corrected."""
    start = start_of(MLP)
    correction = {name: torch.full_like(weight, 0.1) for name, weight in start.items()}
    return [
        replace(
            one, epochs=epochs, correction=correction if is_corrected and place != 2 else None
        )
        for place, (one, epochs) in enumerate(zip(CLIENTS, EPOCHS, strict=True))
    ]


@pytest.mark.parametrize("engine", ["sequential", "stacked"])
@pytest.mark.parametrize("is_corrected", [False, True])
def test_equals_a_plain_loop(engine, is_corrected):
    start, pool = start_of(MLP), pool_of(TABLE, torch.float64)
    trained = train_cohort(
        MLP, start, pool, members(is_corrected), RECIPE, seed=SEED, round=3, engine=engine
    )
    for each in trained:
        change, loss = plain_loop(MLP, start, pool, each.client, RECIPE)
        assert largest_difference(each.delta, change) < 1e-12
        assert each.loss == pytest.approx(loss, abs=1e-12)


@pytest.mark.skipif(not processes.are_supported(), reason="workers inherit a connection")
def test_worker_processes_give_the_bits_of_one_process():
    start, pool = start_of(MLP), pool_of(TABLE, torch.float64)
    here, there = (
        list(
            train_cohort(
                MLP,
                start,
                pool,
                members(is_corrected=True),
                RECIPE,
                seed=SEED,
                round=3,
                engine=engine,
                workers=1,
            )
        )
        for engine in ("sequential", "processes")
    )
    for one, other in zip(here, there, strict=True):
        assert same_bits(one.delta, other.delta)


@pytest.mark.parametrize("proximal", [0.0, 0.5])
def test_rows_of_an_embedding_that_no_batch_looked_up_are_corrected_too(proximal):
    recipe = Recipe(rate=0.1, epochs=2, batch=4, proximal=proximal)
    start, pool = start_of(WORDS), pool_of(TEXTS, torch.float64)
    correction = {name: torch.full_like(weight, 0.1) for name, weight in start.items()}
    member = replace(CLIENTS[0], correction=correction)
    (each,) = train_cohort(WORDS, start, pool, [member], recipe, seed=SEED, round=3)
    change, _ = plain_loop(WORDS, start, pool, member, recipe)
    assert largest_difference(each.delta, change) < 1e-12


def test_a_client_trains_for_one_epoch_or_more():
    with pytest.raises(ValueError, match="1 epoch or more"):
        ClientTask("client/0", torch.arange(2), epochs=0)
