"""Training side by side equals training in sequence."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from overheard.core.defense import BuildModel
from overheard.core.errors import PlanError
from overheard.core.recipe import PrivateSteps, Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.engines import lanes, sequential, side_by_side
from overheard.learning.engines.batch_schedule import GroupedClient
from overheard.learning.engines.sequential import train_sequentially
from overheard.learning.engines.side_by_side import train_side_by_side
from overheard.learning.optimizers import Optimizer
from overheard.learning.train import train_cohort
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
    image_normed,
    largest_difference,
    pool_of,
    same_bits,
    start_of,
)
from tests.learning.pretended_graph import PretendedGraph, pretended_graphs
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

    monkeypatch.setattr(sequential, "train_sequentially", refuse)


NETWORKS: dict[str, tuple[BuildModel, Task]] = {
    "mlp": (MLP, TABLE),
    "convolutions": (CONVOLUTIONS, IMAGES),
    "instance norm": (NORMED, IMAGES),
    "batch norm": (batch_normed, IMAGES),
    "words": (WORDS, TEXTS),
}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.usefixtures("unwanted")
def test_networks_train_as_in_sequence(network: str, count: int) -> None:
    build, task = NETWORKS[network]
    check(*both(build, [group_of(build, task)], RECIPES["sgd"], count))


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
    for count in (1, 2):
        check(*both(MLP, [group], RECIPES["momentum"], count))


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

    with pytest.warns(UserWarning, match="clients of this network train one after the other"):
        one, other = both(build, [group_of(build, TABLE)], RECIPES["sgd"])
    assert all(same_bits(a.delta, b.delta) for a, b in zip(one, other, strict=True))
    assert len(tries) == 1
    assert not side_by_side.can_train_side_by_side(build(), RECIPES["sgd"])


def test_random_numbers_are_drawn_on_the_cpu_in_sequence() -> None:
    """The pretended device refuses to draw them."""

    def build() -> nn.Module:
        return nn.Sequential(_Drawing(), nn.Flatten(), nn.Linear(6, 3))

    group, recipe = group_of(build, TABLE), replace(RECIPES["sgd"], epochs=1)
    here = list(train_sequentially(jobs_of(build, [group], recipe)[0], group.clients))
    told = pytest.warns(UserWarning, match="it draws random numbers$")
    with pretended_device() as device, told:
        check(here, side_by_side_of(build, [group], recipe, device=str(device)))


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


@pytest.mark.usefixtures("unwanted")
def test_batch_norms_train_side_by_side_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    group, recipe = group_of(batch_normed, IMAGES), RECIPES["sgd"]

    here = list(train_sequentially(jobs_of(batch_normed, [group], recipe)[0], CLIENTS))
    lanes_made = list[int]()
    make = side_by_side.SideBySideTrainer._make_lane

    def count(trainer: side_by_side.SideBySideTrainer, model: nn.Module) -> lanes.Lane:
        lanes_made.append(1)
        return make(trainer, model)

    monkeypatch.setattr(side_by_side.SideBySideTrainer, "_make_lane", count)
    with pretended_device() as device:
        there = train_cohort(
            batch_normed,
            group.start,
            group.pool,
            CLIENTS,
            recipe,
            seed=SEED,
            round=3,
            device=device,
        )
        check(here, list(there))
    assert len(lanes_made) == len(CLIENTS)


def test_examples_that_do_not_fit_are_sent_client_by_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(side_by_side, "SideBySideTrainer", None)
    group = group_of(MLP, TABLE)
    monkeypatch.setattr(side_by_side, "free_bytes", lambda device: 3 * group.pool.inputs.nbytes)
    assert len(side_by_side_of(MLP, [group], RECIPES["sgd"])) == len(CLIENTS)


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


def test_whatever_fails_clients_train_in_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are left, and those of later rounds; the reason is told once."""

    def build() -> nn.Module:
        return nn.Sequential(nn.Linear(6, 2), nn.Tanh(), nn.Linear(2, 3))

    groups = [group_of(build, TABLE), group_of(build, TABLE, clients=CLIENTS[:2])]
    read = side_by_side.read_changes

    def fail(*arguments: Any) -> list[list[Tensor]]:
        changes = read(*arguments)
        if len(changes) < 3:  # of the second wave
            raise RuntimeError("CUDA error: launch failed\nA long text.")
        return changes

    monkeypatch.setattr(side_by_side, "read_changes", fail)
    with pytest.warns(UserWarning, match=r"one after the other.*: CUDA error: launch failed$"):
        one, other = both(build, groups, RECIPES["sgd"], lanes=5)
    check(one, other)
    assert not side_by_side.can_train_side_by_side(build(), RECIPES["sgd"])


def test_a_client_that_does_not_fit_alone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(*_: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(sequential.SequentialTrainer, "train", fill)
    (job,) = jobs_of(MLP, [group_of(MLP, TABLE)], RECIPES["sgd"])
    with pytest.raises(PlanError, match="client/0 does not fit into the memory of the GPU"):
        list(train_sequentially(job, CLIENTS))


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[PretendedGraph]]:
    build = lanes.build_optimizer

    def build_for_gpu(*arguments: Any) -> Optimizer:
        optimizer = build(*arguments)
        if hasattr(optimizer, "_steps"):  # a GPU counts them itself
            optimizer._steps = torch.zeros((), dtype=torch.float64)
        return optimizer

    monkeypatch.setattr(lanes, "build_optimizer", build_for_gpu)
    with pretended_graphs() as made:
        yield made


def repeats_of(graphs: list[PretendedGraph]) -> int:
    return sum(one.repeats for one in graphs)


@pytest.mark.parametrize("network", ["convolutions", "instance norm", "normed", "words"])
@pytest.mark.usefixtures("unwanted")
def test_recorded_steps_equal_those_in_sequence(
    network: str, graphs: list[PretendedGraph]
) -> None:
    build, task = {"normed": (image_normed, IMAGES), **NETWORKS}[network]
    check(*both(build, [group_of(build, task)], RECIPES["sgd"], lanes=2))
    # 18, 6, 24 and 12 steps; each graph, of 2 lanes and 2 sizes, was compared once besides.
    assert repeats_of(graphs) == 60 + 4


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.usefixtures("unwanted")
def test_recorded_steps_follow_the_recipe(recipe: str, graphs: list[PretendedGraph]) -> None:
    check(*both(MLP, [group_of(MLP, TABLE)], RECIPES[recipe]))
    assert repeats_of(graphs) == 60 + 6


@pytest.mark.usefixtures("graphs", "unwanted")
def test_recorded_steps_add_the_corrections_of_their_client() -> None:
    correction = {name: torch.full_like(one, 0.1) for name, one in start_of(MLP).items()}
    clients = (*CLIENTS[:2], replace(CLIENTS[2], correction=correction), CLIENTS[3])
    check(*both(MLP, [group_of(MLP, TABLE, clients=clients)], RECIPES["adam"], lanes=1))


@pytest.mark.usefixtures("unwanted")
def test_rare_sizes_of_batches_are_not_recorded(graphs: list[PretendedGraph]) -> None:
    """Each client has a rest of its own, which it meets once."""
    clients = tuple(ClientTask(f"client/{n}", torch.arange(5 + n)) for n in range(3))
    recipe = replace(RECIPES["sgd"], epochs=1)
    check(*both(MLP, [group_of(MLP, TABLE, clients=clients)], recipe, lanes=1))
    assert [one.repeats for one in graphs] == [3 + 1]


class _Reading(nn.Module):
    """Reads a number on the host."""

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs / float(inputs.abs().max())


@pytest.mark.usefixtures("graphs")
def test_a_step_that_waits_for_the_gpu_is_taken_in_sequence() -> None:
    def build() -> nn.Module:
        return nn.Sequential(_Reading(), nn.Linear(6, 3))

    with pytest.warns(UserWarning, match="a step waits for the GPU"):
        check(*both(build, [group_of(build, TABLE)], RECIPES["sgd"]))


@pytest.mark.parametrize("failing", [1, 2, 5])
def test_each_graph_is_compared_with_its_step(
    failing: int, graphs: list[PretendedGraph], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of both sizes and each lane."""

    def build() -> nn.Module:
        return nn.Sequential(nn.Linear(6, 3), *(nn.Identity() for _ in range(failing)))

    replay = PretendedGraph.replay

    def fail(graph: PretendedGraph) -> None:
        if len(graphs) < failing:
            replay(graph)

    monkeypatch.setattr(PretendedGraph, "replay", fail)
    recipe = replace(RECIPES["sgd"], rate=1e-5)  # a step changes next to nothing
    with pytest.warns(UserWarning, match="a recorded step does something else when repeated"):
        check(*both(build, [group_of(build, TABLE)], recipe))
    assert len(graphs) == failing


class _FailingGraph:
    """A graph whose recording fails, as it did in torch 2.11."""

    ended: ClassVar[list[str]] = []

    def capture_begin(self, pool: tuple[int, int], capture_error_mode: str) -> None:
        self.ended.append("begun")

    def capture_end(self) -> None:
        self.ended.append("ended")
        raise RuntimeError("operation failed due to a previous error during capture")

    def pool(self) -> tuple[int, int]:
        raise RuntimeError("called without a preceding successful capture")


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (RuntimeError("operation not permitted\nA long text."), lanes.CannotRepeatError),
        (torch.OutOfMemoryError(), torch.OutOfMemoryError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_a_failed_recording_is_ended(
    error: BaseException, raised: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def step() -> None:
        raise error

    given_back = list[object]()
    monkeypatch.setattr(torch.cuda, "CUDAGraph", _FailingGraph)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 7)
    monkeypatch.setattr(
        torch._C,
        "_cuda_endAllocateToPool",
        lambda *arguments: given_back.append(arguments),
        raising=False,
    )
    monkeypatch.setattr(_FailingGraph, "ended", [])
    with pytest.raises(raised, match=r"recorded \(operation not permitted\)$|^$"):
        lanes.graph_of(step, (0, 3))
    assert _FailingGraph.ended == ["begun", "ended"]
    assert given_back == [(7, (0, 3))]


@pytest.mark.usefixtures("graphs", "unwanted")
def test_lanes_are_as_many_as_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    reserved = iter([0, 100])
    monkeypatch.setattr(side_by_side, "_reserved_bytes", lambda device: next(reserved))
    monkeypatch.setattr(side_by_side, "free_bytes", lambda device: 450_000)
    monkeypatch.setattr(side_by_side, "MEMORY_SHARE", 1 / 1500)
    monkeypatch.setattr(side_by_side, "DATA_SHARE", 1)
    group = group_of(MLP, TABLE)
    (job,) = jobs_of(MLP, [group], RECIPES["sgd"])
    clients = [GroupedClient(group, one) for one in CLIENTS]
    trainer = side_by_side.SideBySideTrainer(job, clients, 8)
    assert len(trainer._lanes) == 4  # one, and three of 100 bytes in 450,000 / 1500
    assert len(list(trainer.train())) == len(CLIENTS)


@pytest.mark.usefixtures("unwanted")
def test_trained_weights_of_all_lanes_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    group = group_of(MLP, TABLE)
    weights = sum(one.nbytes for one in group.start.values())
    monkeypatch.setattr(side_by_side, "free_bytes", lambda device: 4 * 2 * weights * 3)
    (job,) = jobs_of(MLP, [group], RECIPES["sgd"])
    clients = [GroupedClient(group, one) for one in CLIENTS]
    trainer = side_by_side.SideBySideTrainer(job, clients, 8)
    assert len(trainer._lanes) == 3  # two waves each, in a quarter of the memory
    check(*both(MLP, [group], RECIPES["sgd"], lanes=8))


@pytest.mark.usefixtures("graphs", "unwanted")
def test_memory_that_is_full_while_lanes_are_made_halves_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record, recorded = lanes.Lane.record, list[int]()

    def fill(lane: lanes.Lane, size: int) -> None:
        recorded.append(size)
        if len(recorded) == 7:  # of the fourth lane
            raise torch.OutOfMemoryError
        record(lane, size)

    expected, _ = both(MLP, [group_of(MLP, TABLE)], RECIPES["sgd"])
    monkeypatch.setattr(lanes.Lane, "record", fill)
    monkeypatch.setattr(side_by_side, "LEAST_REPEATS", 1)
    check(expected, side_by_side_of(MLP, [group_of(MLP, TABLE)], RECIPES["sgd"], lanes=4))
