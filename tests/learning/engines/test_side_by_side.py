"""Training side by side equals training in sequence."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from overheard.core.defense import BuildModel
from overheard.core.errors import PlanError
from overheard.core.recipe import PrivateSteps, Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.engines import side_by_side
from overheard.learning.engines.sequential import train_sequentially
from overheard.learning.engines.side_by_side import train_side_by_side
from overheard.learning.training_job import (
    ClientResult,
    ClientTask,
    TrainingGroup,
    TrainingJob,
)
from tests.learning.cases import (
    CLIENTS,
    CONVOLUTIONS,
    IMAGES,
    MLP,
    NORMED,
    RECIPES,
    SEED,
    TABLE,
    TEXTS,
    WORDS,
    batch_normed,
    dropping,
    largest_difference,
    pool_of,
    same_bits,
    start_of,
)
from tests.pretended_device import pretended_device

TOLERANCE = 1e-12


def jobs_of(
    build: BuildModel, groups: list[TrainingGroup], recipe: Recipe, device: str = "cpu"
) -> list[TrainingJob]:
    return [
        TrainingJob(build, one.start, one.pool, recipe, one.seed, 3, torch.device(device))
        for one in groups
    ]


def group_of(build: BuildModel, task: Task, **changed: object) -> TrainingGroup:
    double = torch.float64
    return replace(
        TrainingGroup(start_of(build, double), pool_of(task, double), CLIENTS, SEED), **changed
    )


def side_by_side_of(
    build: BuildModel,
    groups: list[TrainingGroup],
    recipe: Recipe,
    lanes: int = 3,
    device: str = "cpu",
) -> list[ClientResult]:
    jobs = jobs_of(build, groups, recipe, device)
    return list(train_side_by_side(build(), jobs, groups, lanes))


def both(
    build: BuildModel, groups: list[TrainingGroup], recipe: Recipe, lanes: int = 3
) -> tuple[list[ClientResult], list[ClientResult]]:
    jobs = jobs_of(build, groups, recipe)
    apart = [
        one
        for job, group in zip(jobs, groups, strict=True)
        for one in train_sequentially(job, group.clients)
    ]
    return apart, side_by_side_of(build, groups, recipe, lanes)


def check(one: list[ClientResult], other: list[ClientResult]) -> None:
    assert [a.client for a in one] == [b.client for b in other]
    for a, b in zip(one, other, strict=True):
        assert largest_difference(a.delta, b.delta) < TOLERANCE
        assert b.loss == pytest.approx(a.loss, abs=TOLERANCE)


@pytest.fixture
def unwanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """No client is trained in sequence instead."""

    def refuse(*_: object) -> None:
        raise AssertionError("trained in sequence")

    monkeypatch.setattr(side_by_side, "train_sequentially", refuse)


NETWORKS: dict[str, tuple[BuildModel, Task]] = {
    "mlp": (MLP, TABLE),
    "convolutions": (CONVOLUTIONS, IMAGES),
    "instance norm": (NORMED, IMAGES),
    "batch norm": (batch_normed, IMAGES),
    "words": (WORDS, TEXTS),
}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.usefixtures("unwanted")
def test_networks_train_as_in_sequence(network: str, lanes: int) -> None:
    build, task = NETWORKS[network]
    check(*both(build, [group_of(build, task)], RECIPES["sgd"], lanes))


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.usefixtures("unwanted")
def test_recipes_train_as_in_sequence(recipe: str) -> None:
    check(*both(MLP, [group_of(MLP, TABLE)], RECIPES[recipe]))


@pytest.mark.usefixtures("unwanted")
def test_own_epochs_and_corrections_stay_with_their_client() -> None:
    start = start_of(MLP)
    correction = {name: torch.full_like(one, 0.1) for name, one in start.items()}
    clients = (
        replace(CLIENTS[0], correction=correction),
        replace(CLIENTS[1], epochs=1),
        replace(CLIENTS[2], epochs=2),
        CLIENTS[3],
    )
    group = group_of(MLP, TABLE, clients=clients)
    for lanes in (1, 2):
        check(*both(MLP, [group], RECIPES["momentum"], lanes))


@pytest.mark.usefixtures("unwanted")
def test_groups_have_their_own_start_pool_and_seed() -> None:
    doubled = {name: 2 * one for name, one in start_of(MLP).items()}
    pool = pool_of(TABLE, torch.float64, 40)
    groups = [
        group_of(MLP, TABLE),
        group_of(MLP, TABLE, clients=()),
        group_of(MLP, TABLE, start=doubled, pool=pool, seed=Seed(6), clients=CLIENTS[:2]),
    ]
    check(*both(MLP, groups, RECIPES["proximal"], 4))


@pytest.mark.usefixtures("unwanted")
def test_a_result_does_not_depend_on_the_other_clients() -> None:
    group = group_of(batch_normed, IMAGES)
    alone = replace(group, clients=CLIENTS[2:3])
    (one,) = side_by_side_of(batch_normed, [alone], RECIPES["sgd"])
    together = side_by_side_of(batch_normed, [group], RECIPES["sgd"], lanes=2)
    assert same_bits(one.delta, together[2].delta)
    assert one.loss == together[2].loss


@pytest.mark.usefixtures("unwanted")
def test_buffers_that_start_weights_leave_out_are_the_same_for_every_client() -> None:
    start = {n: one for n, one in start_of(batch_normed).items() if "running" not in n}
    check(*both(batch_normed, [group_of(batch_normed, IMAGES, start=start)], RECIPES["sgd"], 1))


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.usefixtures("unwanted")
def test_networks_train_on_the_pretended_device(network: str) -> None:
    build, task = NETWORKS[network]
    group, recipe = group_of(build, task), replace(RECIPES["adam"], epochs=1)
    here = side_by_side_of(build, [group], recipe)
    with pretended_device() as device:
        check(here, side_by_side_of(build, [group], recipe, device=str(device)))


class _Drawing(nn.Module):
    """Adds random numbers, which no list of layers shows."""

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs + torch.rand_like(inputs) if self.training else inputs


class _Counting(nn.Module):
    """Counts its steps by a number of Python, which a graph would not raise."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0

    def forward(self, inputs: Tensor) -> Tensor:
        self.steps += 1
        return inputs / self.steps


class _Replacing(nn.Module):
    """Replaces a buffer, which a graph would read and never write."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("factor", torch.ones((), dtype=torch.float64), persistent=False)

    def forward(self, inputs: Tensor) -> Tensor:
        self.factor = self.factor * 0.9
        return inputs * self.factor


class _Uncopied(nn.Module):
    def forward(self, inputs: Tensor) -> Tensor:
        return inputs

    def __deepcopy__(self, memory: object) -> "_Uncopied":
        raise TypeError("no copies of this one")


class _Tied(nn.Module):
    """Calls a layer that its copies do not own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)
        layer = self.layer
        self.call = lambda inputs: 2 * layer(inputs)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.call(inputs)


@pytest.mark.parametrize("layer", [_Drawing, _Counting, _Replacing, _Uncopied, _Tied])
def test_a_step_that_cannot_be_repeated_is_taken_in_sequence(
    layer: Callable[[], nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = list[object]()

    trainer = side_by_side.SideBySideTrainer

    def watched(*arguments: Any) -> side_by_side.SideBySideTrainer:
        tries.append(arguments)
        return trainer(*arguments)

    monkeypatch.setattr(side_by_side, "SideBySideTrainer", watched)

    def build() -> nn.Module:
        return nn.Sequential(layer(), nn.Linear(6, 3))

    one, other = both(build, [group_of(build, TABLE)], RECIPES["sgd"])
    assert all(same_bits(a.delta, b.delta) for a, b in zip(one, other, strict=True))
    assert len(tries) == 1
    assert not side_by_side.can_train_side_by_side(build(), RECIPES["sgd"])


@pytest.mark.parametrize(
    ("build", "recipe"),
    [
        (dropping, RECIPES["sgd"]),
        (MLP, replace(RECIPES["sgd"], private_steps=PrivateSteps(0.5, 1.0, 3, "poisson"))),
        (lambda: nn.Sequential(nn.Embedding(3, 4, sparse=True)), RECIPES["sgd"]),
    ],
)
def test_random_and_sparse_steps_are_refused(build: BuildModel, recipe: Recipe) -> None:
    assert not side_by_side.can_train_side_by_side(build(), recipe)


def test_few_steps_are_taken_in_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making a lane takes as long as a few steps."""
    monkeypatch.setattr(side_by_side, "SideBySideTrainer", None)
    clients = (ClientTask("client/0", torch.arange(4)),)
    group = group_of(MLP, TABLE, clients=clients)
    jobs = jobs_of(MLP, [group], replace(RECIPES["sgd"], epochs=1))
    assert len(list(train_side_by_side(MLP(), jobs, [group]))) == 1


@pytest.mark.parametrize("failing", [2, 4])
def test_full_memory_halves_the_lanes(failing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the first clients or later ones do not fit."""
    group = group_of(MLP, TABLE, clients=(*CLIENTS, *CLIENTS))
    steps, step = [0], side_by_side.Lane.step

    def fill(lane: side_by_side.Lane, size: int) -> None:
        steps[0] += 1
        if steps[0] == 20 * failing:
            raise torch.OutOfMemoryError
        step(lane, size)

    expected, _ = both(MLP, [group], RECIPES["sgd"], 4)
    monkeypatch.setattr(side_by_side.Lane, "step", fill)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    with pytest.warns(UserWarning, match="4 clients side by side do not fit") as told:
        check(expected, side_by_side_of(MLP, [group], RECIPES["sgd"], 4))
    assert len(told) == 1


def test_a_client_that_does_not_fit_alone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(*_: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(side_by_side.Lane, "compute_step", fill)
    with pytest.raises(PlanError, match=r"client/0 does not fit into the memory of the GPU"):
        side_by_side_of(MLP, [group_of(MLP, TABLE)], RECIPES["sgd"])
