"""How many members are stacked."""

from dataclasses import replace

import pytest
import torch

from overheard.learning import memory
from overheard.learning.cohort import Lesson
from overheard.learning.memory import LARGEST_CHUNK, members_that_fit
from tests.learning.cases import MEMBERS, MLP, RECIPES, SEED, TABLE, pool_of, start_of


@pytest.fixture
def lesson():
    pool = pool_of(TABLE, torch.float64)
    return Lesson(MLP, start_of(MLP), pool, RECIPES["sgd"], SEED, 0, torch.device("cpu"))


def test_small_models_are_held_back_by_speed_alone(lesson):
    assert members_that_fit(MLP(), lesson, MEMBERS) == LARGEST_CHUNK["cpu"]


def test_less_memory_means_fewer_members_but_one_at_least(lesson, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 100_000)
    few = members_that_fit(MLP(), lesson, MEMBERS)
    assert 1 < few < LARGEST_CHUNK["cpu"]
    larger = replace(lesson, recipe=replace(lesson.recipe, batch=16))
    assert members_that_fit(MLP(), larger, MEMBERS) < few
    monkeypatch.setattr(memory, "free_bytes", lambda device: 0)
    assert members_that_fit(MLP(), lesson, MEMBERS) == 1
