"""What holds of every way to distil."""

from dataclasses import is_dataclass
from functools import partial

import pytest
import torch

import overheard.learning.distillation.methods
from overheard.core.discover import discover
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.cohort import Member
from overheard.learning.distillation.distillation import Distillation
from overheard.learning.distillation.moments import forgotten
from overheard.learning.distillation.synthetic import noise, stack
from overheard.learning.initial import initial_weights
from overheard.learning.models.lstm import Lstm
from overheard.learning.models.mlp import Mlp

WAYS = discover(overheard.learning.distillation.methods, Distillation)
TASK = Task((4,), ("a", "b", "c"))
BUILD = partial(Mlp(hidden=(8,)).build, TASK)
START = initial_weights(BUILD, Seed(0))
DRAW = Seed(3).generator()
POOL = Examples(torch.randn(40, 4, generator=DRAW), torch.randint(3, (40,), generator=DRAW))
MEMBERS = [Member("client/0", torch.arange(20)), Member("client/1", torch.arange(20, 40))]

every = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def distil(how: Distillation, members: list[Member] = MEMBERS):
    shared = noise(TASK, how.samples, how.first_rate, Seed(1))
    before = shared.map(torch.clone)
    done = how.distiller(BUILD, START).distil(
        shared, POOL, members, forgotten(shared, len(members)), round=0, scale=1.0, seed=Seed(2)
    )
    assert all(a.equal(b) for a, b in zip(shared, before, strict=True))
    return done


@every
def test_it_is_a_frozen_dataclass_of_settings_that_says_its_source(way) -> None:
    assert is_dataclass(way)
    assert way.source
    assert way() == way()
    assert way().scale(0) == 1


@every
def test_each_member_gets_a_set_of_the_same_form_and_the_same_each_time(way) -> None:
    how = way(samples=2)
    done, again = distil(how), distil(how)
    assert done.examples.inputs.shape == (2, 6, 4)
    assert done.examples.labels.shape == (2, 6, 3)
    assert done.examples.rates.shape == (2, 6)
    assert done.losses.shape == (2,)
    assert done.examples.is_finite()
    for one, other in zip(done.examples, again.examples, strict=True):
        assert one.equal(other)
    assert not done.examples.inputs[0].equal(done.examples.inputs[1])


@every
def test_sets_teach_each_member_apart_from_the_first_weights(way) -> None:
    how = way(samples=2)
    distiller = how.distiller(BUILD, START)
    sets = [noise(TASK, 2, how.first_rate, Seed(n)) for n in (5, 6)]
    both = distiller.train(stack(sets))
    (second,) = distiller.train(stack(sets[1:]))
    assert list(second) == list(START)
    for name, one in second.items():
        assert one.allclose(both[1][name], atol=1e-6)
        assert not one.equal(START[name])
    assert distiller.bytes_kept(6, 2) >= distiller.bytes_kept(6, 1) > 0


@every
def test_texts_cannot_be_distilled(way) -> None:
    texts = Task((5,), ("a", "b"), vocabulary=9)
    build = partial(Lstm().build, texts)
    with pytest.raises(PlanError, match="take images or tables"):
        way().distiller(build, initial_weights(build, Seed(0)))
