"""Batches, jobs and memory of a training, and the device it takes."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.learning import memory
from overheard.learning.batches import epoch_order
from overheard.learning.devices.choice import choose_device
from overheard.learning.memory import LARGEST_CHUNK, clients_that_fit
from overheard.learning.training_job import ClientTask, TrainingJob
from tests.learning.cases import CLIENTS, IMAGES, MLP, RECIPES, SEED, TABLE, pool_of, start_of


@given(examples=st.integers(1, 50), epoch=st.integers(0, 5))
def test_an_epoch_uses_every_example_once(examples, epoch):
    order = epoch_order(Seed(0), 1, "client/0", epoch, examples)
    assert sorted(order.tolist()) == list(range(examples))


def test_the_order_depends_on_every_argument():
    orders = [
        epoch_order(Seed(seed), round, name, epoch, 20).tolist()
        for seed, round, name, epoch in [
            (0, 0, "a", 0),
            (1, 0, "a", 0),
            (0, 1, "a", 0),
            (0, 0, "b", 0),
            (0, 0, "a", 1),
        ]
    ]
    assert len({tuple(order) for order in orders}) == 5


def test_refuses_a_client_without_examples():
    with pytest.raises(ValueError, match="client/0 has no examples"):
        ClientTask("client/0", torch.arange(0))


@pytest.fixture
def lesson():
    pool = pool_of(TABLE, torch.float64)
    return TrainingJob(MLP, start_of(MLP), pool, RECIPES["sgd"], SEED, 0, torch.device("cpu"))


def test_less_memory_gives_fewer_clients_but_at_least_one(lesson, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 100_000)
    few = clients_that_fit(MLP(), lesson, CLIENTS)
    assert 1 < few < LARGEST_CHUNK["cpu"]
    larger = replace(lesson, recipe=replace(lesson.recipe, batch=16))
    assert clients_that_fit(MLP(), larger, CLIENTS) < few
    monkeypatch.setattr(memory, "free_bytes", lambda device: 0)
    assert clients_that_fit(MLP(), lesson, CLIENTS) == 1


def test_the_neighbourhoods_of_convolutions_take_memory_on_a_gpu(monkeypatch):
    # 2 channels of 8 x 8, kernels of 3 x 3: 36 outputs of 18 inputs each, 8 bytes a number, for
    # the backward pass twice, and for a batch of 4.
    def build() -> nn.Module:
        return nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(108, 3))

    pool = pool_of(IMAGES, torch.float64)
    most = {}
    for device in ("cpu", "cuda"):
        job = TrainingJob(
            build, start_of(build), pool, RECIPES["sgd"], SEED, 0, torch.device(device)
        )
        monkeypatch.setattr(memory, "COPIES_OF_WEIGHTS", {"cpu": 0, "cuda": 0})
        monkeypatch.setitem(memory.LARGEST_CHUNK, device, 10**9)
        monkeypatch.setattr(memory, "free_bytes", lambda device: 10**12)
        most[device] = clients_that_fit(build().double(), job, CLIENTS)
    taken = [memory.MEMORY_SHARE * 10**12 / most[device] for device in ("cuda", "cpu")]
    assert taken[0] - taken[1] == pytest.approx(2 * 4 * 36 * 18 * 8, rel=1e-3)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_refuses_a_missing_gpu():
    with pytest.raises(PlanError, match="choose 'auto' or 'cpu'"):
        choose_device("cuda")
