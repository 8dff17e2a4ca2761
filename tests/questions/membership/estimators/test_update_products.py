"""Products of updates and directions equal those of vectors computed one by one."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from overheard.core.examples import concatenate_examples
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.messages import apply_update
from overheard.core.parties import SERVER, client
from overheard.defenses.local_dp import LocalDp
from overheard.learning.example_gradients import example_gradients, flatten_weights
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.questions.membership.estimators import update_products as module
from overheard.questions.membership.estimators.update_products import (
    RoundProducts,
    compute_update_products,
    default_trainings,
)
from overheard.questions.membership.estimators.update_products_job import PATH_POINTS
from tests.simulation.small_run import CountingCache

TARGETS = (client(0), client(2))


def products_of(run, cache=None, models: int = 8, **known: object) -> RoundProducts:
    compute = replace(run.knowledge.compute, cache=cache or CountingCache())
    knowledge = replace(run.knowledge, compute=compute, **known)
    view = run.transcript.seen_by(SERVER)
    return compute_update_products(view, knowledge, {1: TARGETS}, models)[1]


def test_products_are_those_of_updates_and_mean_gradients(by_heart) -> None:
    found, known = products_of(by_heart), by_heart.knowledge
    view = by_heart.transcript.seen_by(SERVER)
    start = view.broadcasts()[1]
    pool = concatenate_examples((known.auxiliary, candidate_records(known)))
    seed = known.compute.seed.child("update products")
    rows = [
        torch.randperm(300, generator=seed.child("shadow", number).generator())[:20]
        for number in range(8)
    ]
    trained = train_cohort(
        known.build_model,
        start,
        pool,
        [ClientTask(f"shadow/{number}", own) for number, own in enumerate(rows)],
        known.recipe,
        seed=seed.child("training"),
        round=1,
    )
    shadows = torch.stack([flatten_weights(one.delta) for one in trained])
    names = sorted(start)
    pieces = shadows.mean(0).split([start[name].numel() for name in names])
    change = {n: piece.view(start[n].shape) for n, piece in zip(names, pieces, strict=True)}
    gradients = [
        example_gradients(
            known.build_model,
            apply_update(start, {name: part * change[name] for name in start}),
            candidate_records(known),
            known.recipe,
        )
        for part in PATH_POINTS
    ]
    directions = -torch.stack(gradients).mean(0)
    directions = directions - directions.mean(0)
    update = flatten_weights(view.updates(TARGETS[1])[1].delta) - shadows.mean(0)
    target = found.targets[TARGETS[1]]
    close = {"atol": 1e-2, "rtol": 1e-2}
    torch.testing.assert_close(target.with_records[0], (directions @ update).double(), **close)
    torch.testing.assert_close(
        found.shadows.record_squares, directions.square().sum(1).double(), **close
    )
    assert float(target.squares[0]) == pytest.approx(float(update.square().sum()), rel=1e-3)
    inside = [sorted((own[own >= 120] - 120).tolist()) for own in rows]
    assert [one.nonzero().flatten().tolist() for one in found.shadows.is_member] == inside
    assert found.shadows.parameters == update.numel()


def test_results_are_cached_and_known_defenses_compute_new_ones(by_heart) -> None:
    cache = CountingCache()
    plain = products_of(by_heart, cache)
    again = products_of(by_heart, cache)
    assert len(cache.saved) == 1
    assert again.shadows.among_shadows.equal(plain.shadows.among_shadows)
    defenses = (LocalDp(clip=0.1, noise_multiplier=0.0),)
    clipped = products_of(by_heart, cache, defenses=defenses)
    assert len(cache.saved) == 2
    # Clipped to 0.1 and centred, no shadow update is longer than 0.2.
    assert float(clipped.shadows.among_shadows.diagonal().max()) <= 0.04 + 1e-6
    assert float(plain.shadows.among_shadows.diagonal().max()) > 0.04


def test_large_models_get_fewer_shadow_models(by_heart, monkeypatch) -> None:
    monkeypatch.setattr(module, "MAX_SHADOW_BYTES", 1)
    assert len(products_of(by_heart, models=20).shadows.is_member) == module.MIN_SHADOWS


def test_trains_on_each_record_where_that_is_affordable_and_clients_see_it_twice() -> None:
    # 1,000 records, 60 examples, 10 epochs: 600,000 passes
    assert default_trainings(1000, 60, 10, parameters=10_000) == 2
    assert default_trainings(1000, 60, 10, parameters=20_000) == 0
    assert default_trainings(1000, 60, 1, parameters=10_000) == 0
    assert default_trainings(1000, 60, 2, parameters=10_000) == 2


def test_the_default_number_of_trainings_follows_the_recipe(by_heart) -> None:
    def computed(epochs: int, trainings: int | None) -> Tensor:
        recipe = replace(by_heart.knowledge.recipe, epochs=epochs)
        products = compute_update_products(
            by_heart.transcript.seen_by(SERVER),
            replace(by_heart.knowledge, recipe=recipe),
            {1: TARGETS},
            8,
            trainings,
        )
        return products[1].shadows.record_squares

    assert computed(1, None).equal(computed(1, 0))
    assert computed(2, None).equal(computed(2, 2))
