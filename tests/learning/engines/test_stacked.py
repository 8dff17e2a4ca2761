"""What stacked clients do on a GPU alone: steps are repeated, and memory is used again."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from overheard.core.defense import BuildModel
from overheard.core.errors import PlanError
from overheard.learning.engines import stacked
from overheard.learning.engines.stacked_mlp import StackedMlp
from overheard.learning.engines.stacked_steps import StackedSteps
from overheard.learning.engines.vmapped_networks import VmappedNetworks, runs_under_vmap
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientResult, ClientTask
from tests.learning.cases import (
    CLIENTS,
    CONVOLUTIONS,
    IMAGES,
    MLP,
    NORMED,
    READING,
    RECIPES,
    SEED,
    TABLE,
    TEXTS,
    WORDS,
    dropping,
    largest_difference,
    pool_of,
    start_of,
)
from tests.learning.pretended_graph import pretended_graphs
from tests.pretended_device import pretended_device


class _Memory:
    """A memory that holds the weights of some clients, and notes how many there were."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.seen: list[int] = []
        self._write = StackedMlp.write_gradients

    def write_gradients(self, networks: StackedMlp, *given: object, **named: object) -> object:
        gradients = given[0]
        assert isinstance(gradients, Sequence)
        clients = len(gradients[0])
        if not self.seen or self.seen[-1] != clients:
            self.seen.append(clients)
        if clients > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return self._write(networks, *given, **named)  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [stacked.POOL_SHARE, 0.0], ids=["near", "far"])
@pytest.mark.parametrize("recipe", ["sgd", "momentum", "adam", "adadelta", "proximal"])
def test_stacks_of_one_shape_share_memory_and_graphs(recipe: str, share: float) -> None:
    # Both stacks of two clients have one shape, so the second one gets the memory of the first.
    # Batches of three examples are filled up.
    start, pool = start_of(MLP), pool_of(TABLE, torch.float64)
    sizes = (11, 3, 3, 11)
    correction = {name: torch.full_like(weight, 0.01) for name, weight in start.items()}
    clients = [
        ClientTask(f"client/{n}", torch.arange(size), correction=correction)
        for n, size in enumerate(sizes)
    ]
    train = partial(
        train_cohort, MLP, start, pool, clients, RECIPES[recipe], seed=SEED, round=0
    )
    loads = patch.object(StackedSteps, "load", autospec=True, side_effect=StackedSteps.load)
    pool_share = patch.object(stacked, "POOL_SHARE", share)
    with (
        pretended_device() as device,
        pool_share,
        loads as load,
        pretended_graphs() as graphs,
    ):
        there = list(train(device=device, engine="stacked", chunk=2))
    assert load.call_count == 1
    # In each stack there are 6 steps of both clients, and then 12 of one.
    assert [graph.repeats for graph in graphs] == [12, 24]
    for one, other in zip(there, train(engine="sequential"), strict=True):
        assert largest_difference(one.delta, other.delta) < 1e-12
        assert one.loss == pytest.approx(other.loss, abs=1e-12)


@pytest.mark.parametrize("build", [WORDS, READING], ids=["bag", "lstm"])
def test_steps_of_networks_for_texts_can_be_repeated(build: BuildModel) -> None:
    start, pool = start_of(build), pool_of(TEXTS, torch.float64)
    recipe = replace(RECIPES["momentum"], epochs=2)
    train = partial(train_cohort, build, start, pool, CLIENTS[2:], recipe, seed=SEED, round=0)
    with pretended_device() as device, pretended_graphs() as graphs:
        there = list(train(device=device))
    assert graphs
    for one, other in zip(there, train(engine="sequential"), strict=True):
        assert largest_difference(one.delta, other.delta) < 1e-12


@pytest.mark.parametrize("recipe", ["sgd", "adam"])
def test_clients_drop_on_a_gpu_what_they_drop_on_a_cpu(recipe: str) -> None:
    start, pool = start_of(dropping), pool_of(TABLE, torch.float64)
    train = partial(
        train_cohort, dropping, start, pool, CLIENTS, RECIPES[recipe], seed=SEED, round=0
    )
    with pretended_device() as device, pretended_graphs() as graphs:
        there = list(train(device=device))
    assert not graphs  # which would repeat the first draw
    for one, other in zip(there, train(engine="sequential"), strict=True):
        assert largest_difference(one.delta, other.delta) < 1e-12


def train(most: int) -> tuple[list[ClientResult], list[int]]:
    memory = _Memory(most)
    start, pool = start_of(MLP), pool_of(TABLE, torch.float64)

    def write(networks: StackedMlp, *given: object, **named: object) -> object:
        return memory.write_gradients(networks, *given, **named)

    with patch.object(StackedMlp, "write_gradients", write):
        clients = [*CLIENTS[:1]] * 7
        results = train_cohort(MLP, start, pool, clients, RECIPES["sgd"], seed=SEED, round=0)
        return list(results), memory.seen


def test_fewer_clients_are_trained_at_once_and_that_is_said_once() -> None:
    whole, _ = train(most=7)
    with pytest.warns(UserWarning, match="7 clients at once do not fit") as told:
        parts, seen = train(most=2)
    assert len(told) == 1
    # The size that fits stays.
    assert seen == [7, 4, 2, 1]
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one.delta, other.delta)


def test_a_client_that_does_not_fit_is_refused() -> None:
    with (
        pytest.warns(UserWarning, match="fit"),
        pytest.raises(PlanError, match=r"batch.*'cpu'"),
    ):
        train(most=0)


@pytest.mark.parametrize(
    ("build", "has_triton", "kind"),
    [
        (MLP, True, "StackedMlp"),
        (NORMED, True, "StackedConvolutions"),
        (NORMED, False, "VmappedNetworks"),
        (WORDS, True, "VmappedNetworks"),
    ],
)
def test_networks_are_chosen_by_architecture_and_device(
    build: BuildModel, has_triton: bool, kind: str
) -> None:
    pytest.importorskip("triton")
    with patch.object(stacked, "runs_triton", lambda device: has_triton):
        assert type(stacked.build_stacked_networks(build())).__name__ == kind


class Hidden(nn.Module):
    """Dropout that no module shows."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(6, 3, bias=False)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        dropped = functional.dropout(inputs, 0.5, self.training)
        return functional.linear(dropped, self.last.weight)


class Branching(Hidden):
    """A network that computes what its numbers say."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        turned = inputs if inputs.sum() > 0 else -inputs
        return functional.linear(turned, self.last.weight)


def test_networks_that_vmap_cannot_run_are_told_apart() -> None:
    """On a GPU others are stacked."""
    start, pool = start_of(Hidden), pool_of(TABLE, torch.float64)
    with pytest.raises(PlanError, match=r"random numbers.*choose 'auto'"):
        train_cohort(
            *(Hidden, start, pool, CLIENTS, RECIPES["sgd"]),
            seed=SEED,
            round=0,
            engine="stacked",
        )
    inputs = pool_of(TABLE, torch.float64).inputs
    assert not runs_under_vmap(Hidden().train(), inputs)
    assert not runs_under_vmap(Branching().train(), inputs)
    assert runs_under_vmap(MLP().train(), inputs)
    assert runs_under_vmap(WORDS().train(), pool_of(TEXTS, torch.float64).inputs)


@pytest.mark.parametrize("build", [MLP, CONVOLUTIONS], ids=["mlp", "vmap"])
def test_clients_train_in_sequence_if_a_gpu_cannot_compute_a_stack(build: BuildModel) -> None:
    task = TABLE if build is MLP else IMAGES
    start, pool = start_of(build), pool_of(task, torch.float64)
    train = partial(
        train_cohort, build, start, pool, CLIENTS[:2], RECIPES["sgd"], seed=SEED, round=0
    )
    kind = StackedMlp if build is MLP else VmappedNetworks
    fails = patch.object(kind, "write_gradients", side_effect=RuntimeError("no kernel\nmore"))
    with pretended_device() as device, fails:
        with pytest.warns(UserWarning, match="one by one.*no kernel$"):
            there = list(train(device=device))
        with pytest.raises(RuntimeError, match="no kernel"):
            list(train(device=device, engine="stacked"))
    steps, run = CLIENTS[0].steps_in(RECIPES["sgd"]), kind.write_gradients

    def fail_later(*given: Any) -> Tensor:
        if write.call_count > steps:
            raise RuntimeError("no kernel")
        return run(*given)

    later = patch.object(kind, "write_gradients", autospec=True, side_effect=fail_later)
    with pretended_device() as device, later as write:
        with pytest.warns(UserWarning, match="one by one.*no kernel$"):
            from_second = list(train(device=device, chunk=1))
        assert write.call_count == steps + 1
    for found in (there, from_second):
        for one, other in zip(found, train(engine="sequential"), strict=True):
            assert one.client is other.client
            assert largest_difference(one.delta, other.delta) < 1e-12
