from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import ClassVar, final

import pytest
import torch

from overheard.algorithms.scaffold import Scaffold
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.defense import Defense, DefenseContext
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.mechanism import Site
from overheard.core.messages import Aggregate, Broadcast, Weights
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.defenses.noise import Noise
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientResult, ClientTask
from overheard.simulation.auxiliary_split import AuxiliarySplit, split_auxiliary
from overheard.simulation.cached_readings import TrainingPool, build_pool
from overheard.simulation.chunk import Chunk, draw_chunks
from overheard.simulation.job_tensors import (
    BACKGROUND_NAME,
    BROADCAST_PREFIX,
    pack_examples,
    pack_history,
    pack_quarters,
)
from overheard.simulation.probe import Probe
from overheard.simulation.read_chunk import ReadChunk
from overheard.simulation.simulation_context import build_context
from overheard.simulation.virtual_client import VirtualClient
from tests.simulation.small_run import (
    CLASSES,
    RECIPE,
    Raw,
    blobs,
    broadcast,
    build,
    knowledge,
    server_view,
)

SEED = Seed(11)
NOTHING_MORE: Mapping[str, torch.Tensor] = MappingProxyType({})
RAW = Raw()
AUXILIARY = blobs(400)
SPLIT = split_auxiliary(AUXILIARY.labels, CLASSES, SEED)
POOL = build_pool(AUXILIARY, SPLIT, SEED)

CLIENTS = tuple(
    VirtualClient(number, number % 2, 0, counts)
    for number, counts in enumerate(((9, 1, 0), (0, 12, 4), (2, 2, 2), (30, 0, 1)))
)


def read(
    chunk: Chunk,
    probe: Probe = RAW,
    *,
    defenses: tuple[Defense, ...] = (),
    recipes: tuple[Recipe, ...] = (RECIPE,),
    round: int = 2,
    background: Examples | None = None,
    algorithm: Algorithm | None = None,
    more: Mapping[str, torch.Tensor] = NOTHING_MORE,
) -> torch.Tensor:
    job = ReadChunk(
        round,
        chunk,
        CLASSES,
        build,
        recipes,
        RECIPE,
        defenses,
        SEED,
        "cpu",
        (probe,),
        algorithm,
    )
    tensors = tensors_of(SPLIT, POOL, broadcast(0))
    if background is not None:
        tensors |= pack_examples(BACKGROUND_NAME, background)
    return job.run({**tensors, **more})["0"]


def tensors_of(
    split: AuxiliarySplit, pool: TrainingPool, start: Weights
) -> dict[str, torch.Tensor]:
    """Return what every job reads."""
    return {
        "pool/inputs": pool.examples.inputs,
        "pool/labels": pool.examples.labels,
        **pack_quarters(pool.quarters),
        "auxiliary/inputs": AUXILIARY.inputs,
        "auxiliary/labels": AUXILIARY.labels,
        "held out": split.held_out,
        **{BROADCAST_PREFIX + name: weight for name, weight in start.items()},
    }


TRAIN = partial(train_cohort, build, seed=SEED.child("training"))
"""Trains as in a federation."""


def tasks_of(clients: Sequence[VirtualClient], most: int | None = None) -> list[ClientTask]:
    """Return the training of these clients, on the first of their examples."""
    labels, quarters = POOL.examples.labels, POOL.quarters
    return [ClientTask(c.name, c.draw_rows(labels, quarters, SEED)[:most]) for c in clients]


def flat(learned: Iterable[ClientResult]) -> torch.Tensor:
    """Return a row with the update of each client."""
    rows = [torch.cat([part.flatten() for part in one.delta.values()]) for one in learned]
    return torch.stack(rows)


def trained(
    clients: Sequence[VirtualClient], recipe: Recipe = RECIPE, most: int | None = None
) -> torch.Tensor:
    """Return the updates of the same clients, trained as in a federation."""
    return flat(TRAIN(broadcast(0), POOL.examples, tasks_of(clients, most), recipe, round=2))


def test_virtual_clients_train_as_in_a_federation() -> None:
    assert read(Chunk(CLIENTS)).equal(trained(CLIENTS))


def test_a_control_variate_is_the_mean_gradient_of_the_round_before() -> None:
    control = {name: torch.full_like(part, 0.3) for name, part in broadcast(0).items()}
    history = {1: Broadcast(broadcast(5), control=control)}
    history[2] = Broadcast(broadcast(0), control=control)
    corrected = read(Chunk(CLIENTS), algorithm=Scaffold(), more=pack_history(history))
    before = TRAIN(broadcast(5), POOL.examples, tasks_of(CLIENTS), RECIPE, round=1)
    tasks = [
        replace(
            one.client,
            correction={
                name: 0.3 + part / (one.client.steps_in(RECIPE) * RECIPE.rate)
                for name, part in one.delta.items()
            },
        )
        for one in before
    ]
    expected = flat(TRAIN(broadcast(0), POOL.examples, tasks, RECIPE, round=2))
    torch.testing.assert_close(corrected, expected, rtol=1e-4, atol=1e-6)
    assert not torch.allclose(corrected, trained(CLIENTS), atol=1e-2)


def test_each_client_follows_its_recipe() -> None:
    fast = replace(RECIPE, rate=1.0)
    mixed = tuple(replace(client, recipe=client.number % 2) for client in CLIENTS)
    updates = read(Chunk(mixed), recipes=(RECIPE, fast))
    assert torch.allclose(updates[::2], trained(CLIENTS[::2]))
    assert torch.allclose(updates[1::2], trained(CLIENTS[1::2], fast))


def test_a_cohort_is_the_size_weighted_mean_of_its_members() -> None:
    # Sizes are 10, 16, 6 and 31, so weights of the first and third are 10 / 16 and 6 / 16.
    alone = read(Chunk(CLIENTS))
    cohorts = read(Chunk(CLIENTS, ((0, 2), (1,))))
    assert torch.allclose(cohorts[0], 0.625 * alone[0] + 0.375 * alone[2], atol=1e-7)
    assert cohorts[1].equal(alone[1])


def test_noise_of_a_defense_differs_by_client_and_round() -> None:
    added = read(Chunk(CLIENTS), defenses=(Noise(0.5),)) - read(Chunk(CLIENTS))
    # 4 x 43 draws of deviation 0.5: the standard error of their deviation is 0.027.
    assert float(added.std()) == pytest.approx(0.5, abs=0.1)
    assert float((added[0] * added[1]).mean()) == pytest.approx(0.0, abs=0.15)
    other_round = read(Chunk(CLIENTS), defenses=(Noise(0.5),), round=3)
    assert not (other_round - read(Chunk(CLIENTS), round=3)).equal(added)


@final
@dataclass(frozen=True, slots=True)
class OnlyFirst(Defense):
    """Trains on the first example alone."""

    name: ClassVar[str] = "only_first"
    source: ClassVar[str] = "test"
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "nobody"

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        return data.take(torch.arange(1))


def test_a_defense_of_data_changes_updates_and_sizes() -> None:
    alone = read(Chunk(CLIENTS), defenses=(OnlyFirst(),))
    assert torch.allclose(alone, trained(CLIENTS, most=1))
    # With one example each, all members have equal weight.
    (mean,) = read(Chunk(CLIENTS, ((0, 3),)), defenses=(OnlyFirst(),))
    assert torch.allclose(mean, (alone[0] + alone[3]) / 2, atol=1e-7)


@final
@dataclass(frozen=True, slots=True)
class OnlyPublic(Defense):
    """Trains on one background example, drawn once for the party."""

    name: ClassVar[str] = "only_public"
    source: ClassVar[str] = "test"
    enforced_at: ClassVar[Site] = "client"
    switched_off_by: ClassVar[str] = "nobody"

    def on_data(self, data: Examples, context: DefenseContext) -> Examples:
        draws = context.persistent_seed.generator()
        return context.background.take(torch.randint(300, (1,), generator=draws))


def test_virtual_clients_use_the_same_background_in_every_round() -> None:
    background = blobs(100, seed=9)
    updates = [
        read(Chunk(CLIENTS), defenses=(OnlyPublic(),), background=background, round=number)
        for number in (2, 3)
    ]
    # With one broadcast and one example each, updates are equal in both rounds, not by client.
    assert updates[0].equal(updates[1])
    assert len(updates[0].unique(dim=0)) == 4


@final
@dataclass(frozen=True, slots=True)
class Doubling(Defense):
    """Doubles an aggregate before any party reads it."""

    name: ClassVar[str] = "doubling"
    source: ClassVar[str] = "test"
    enforced_at: ClassVar[Site] = "protocol"
    switched_off_by: ClassVar[str] = "nobody"

    def on_aggregate(self, aggregate: Aggregate, context: DefenseContext) -> Aggregate:
        return replace(aggregate, delta={n: 2 * part for n, part in aggregate.delta.items()})


@final
@dataclass(frozen=True, slots=True)
class AtServer(Defense):
    """As `Doubling`, but only after the server has read it."""

    name: ClassVar[str] = "at_server"
    source: ClassVar[str] = "test"
    enforced_at: ClassVar[Site] = "server"
    switched_off_by: ClassVar[str] = "the server"

    def on_aggregate(self, aggregate: Aggregate, context: DefenseContext) -> Aggregate:
        return Doubling().on_aggregate(aggregate, context)


def test_a_defense_of_the_aggregate_acts_unless_it_is_the_servers() -> None:
    cohorts = Chunk(CLIENTS, ((0, 1), (2, 3)))
    plain = read(cohorts)
    assert read(cohorts, defenses=(Doubling(),)).equal(2 * plain)
    assert read(cohorts, defenses=(AtServer(),)).equal(plain)
    # A client reads only what the server sends out.
    sent_out = replace(cohorts, after_server=True)
    assert read(sent_out, defenses=(AtServer(),)).equal(2 * plain)
    assert read(Chunk(CLIENTS), defenses=(Doubling(),)).equal(read(Chunk(CLIENTS)))


def test_a_training_that_diverges_is_reported_by_name() -> None:
    wild = Recipe(rate=1e30, epochs=3, batch=2)
    with pytest.raises(NeedsError, match=r"virtual/\d diverged in round 2.*lower the rate"):
        read(Chunk(CLIENTS), recipes=(wild,))


def test_virtual_and_real_clients_have_the_same_probe_context() -> None:
    contexts = []

    @final
    @dataclass(frozen=True, slots=True)
    class RecordingProbe(Probe):
        def read(self, scene, deltas):
            contexts.append(scene)
            return torch.zeros(len(deltas))

    attacker = knowledge(auxiliary=AUXILIARY, virtual=4)
    simulation_context = build_context(server_view(), attacker, (0,))
    (chunk,) = draw_chunks(attacker, (5, 9), None, SEED)
    split = simulation_context.auxiliary_split
    job = ReadChunk(
        0,
        chunk,
        CLASSES,
        build,
        (RECIPE,),
        RECIPE,
        (),
        simulation_context.seed,
        "cpu",
        (RecordingProbe(),),
    )
    pool = build_pool(AUXILIARY, split, SEED)
    job.run(tensors_of(split, pool, simulation_context.broadcasts[0]))
    (virtual,), real = contexts, simulation_context.probe_context(0)
    assert virtual.seed == real.seed
    assert virtual.held_out.inputs.equal(real.held_out.inputs)
    assert virtual.held_out.labels.equal(real.held_out.labels)
    assert virtual.broadcast.keys() == real.broadcast.keys()
    assert virtual.recipe == real.recipe
