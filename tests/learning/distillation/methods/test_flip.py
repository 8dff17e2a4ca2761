from dataclasses import replace
from functools import partial

import pytest
import torch
from torch.nn.functional import cross_entropy

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.distillation.methods.flip import Flip
from overheard.learning.distillation.moments import zero_moments
from overheard.learning.distillation.synthetic import draw_noise_examples
from overheard.learning.evaluate import accuracy
from overheard.learning.initialization import initial_weights
from overheard.learning.models.mlp import Mlp
from overheard.learning.training_job import ClientTask

TASK = Task((4,), ("a", "b", "c"))
CLASSES = 3
BUILD = partial(Mlp(hidden=(8,)).build, TASK)
START = initial_weights(BUILD, Seed(0))
HOW = Flip(samples=2, batch=20)


def examples(seed: int, size: int = 120) -> Examples:
    """Three clusters, one per label."""
    draw = Seed(seed).generator()
    labels = torch.randint(CLASSES, (size,), generator=draw)
    centres = 2 * torch.eye(CLASSES, 4)
    return Examples(centres[labels] + 0.3 * torch.randn(size, 4, generator=draw), labels)


POOL = examples(0)
CLIENTS = [
    ClientTask("client/0", torch.arange(60)),
    ClientTask("client/1", torch.arange(60, 120)),
]


def rounds(count: int, how: Flip = HOW, members=CLIENTS):
    distiller = how.build_distiller(BUILD, START)
    shared = draw_noise_examples(TASK, how.samples, how.first_rate, Seed(1))
    moments = zero_moments(shared, len(members))
    for number in range(count):
        done = distiller.distil(
            shared, POOL, members, moments, round=number, rate_scale=1.0, seed=Seed(2)
        )
        moments = done.moments
        shared = done.examples.map(lambda one: one.mean(0))
    return distiller, shared, done


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 3])
def test_a_model_trained_on_the_distilled_set_is_accurate(steps: int) -> None:
    how = Flip(2, steps, 20, first_rate=0.2, rate_rate=0.01)
    distiller, shared, done = rounds(60 // steps, how)
    (weights,) = distiller.train(shared.map(lambda one: one[None]))
    assert accuracy(BUILD, weights, examples(9)) > 0.9
    noisy = draw_noise_examples(TASK, 2, how.first_rate, Seed(1)).map(lambda one: one[None])
    assert accuracy(BUILD, distiller.train(noisy)[0], examples(9)) < 0.8
    assert done.moments.steps.tolist() == [60, 60]


def test_returns_the_loss_of_the_clients_own_examples() -> None:
    how = Flip(samples=2, batch=1000)
    distiller, _, done = rounds(1, how)
    start = draw_noise_examples(TASK, 2, how.first_rate, Seed(1)).map(lambda one: one[None])
    (weights,) = distiller.train(start)
    model = BUILD()
    model.load_state_dict(dict(weights))
    own = POOL.take(CLIENTS[1].rows)
    expected = cross_entropy(model(own.inputs), own.labels).item()
    assert float(done.losses[1]) == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_several_examples_at_once_take_fewer_steps() -> None:
    # Two steps of three examples in place of six steps: other weights, as good a model.
    how = Flip(2, 1, 20, first_rate=0.2, rate_rate=0.01)
    one_by_one, shared, _ = rounds(60, how)
    together, theirs, _ = rounds(60, replace(how, at_once=3))
    (weights,) = together.train(theirs.map(lambda one: one[None]))
    assert accuracy(BUILD, weights, examples(9)) > 0.9
    sets = shared.map(lambda one: one[None])
    (mine,), (other,) = one_by_one.train(sets), together.train(sets)
    assert not all(mine[name].allclose(other[name], atol=1e-3) for name in mine)
    assert one_by_one.needed_bytes(6, 2) == 3 * together.needed_bytes(6, 2)


def test_rates_are_halved_after_halve_every_rounds() -> None:
    assert [Flip(halve_every=40).rate_scale(n) for n in (0, 39, 40, 80)] == [1, 1, 0.5, 0.25]
    assert Flip(halve_every=0).rate_scale(1000) == 1
