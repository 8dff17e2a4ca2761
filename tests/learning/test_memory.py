"""The number of clients in a stack."""

from dataclasses import replace

import pytest
import torch

from overheard.learning import memory
from overheard.learning.memory import LARGEST_CHUNK, clients_that_fit
from overheard.learning.training_job import TrainingJob
from tests.learning.cases import CLIENTS, MLP, RECIPES, SEED, TABLE, pool_of, start_of


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
