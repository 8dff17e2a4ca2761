"""Both methods distil examples on which models can be trained."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, one_hot

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.distillation.distillation import DistillationResult
from overheard.learning.distillation.methods.distribution_matching import DistributionMatching
from overheard.learning.distillation.methods.flip import Flip
from overheard.learning.distillation.moments import zero_moments
from overheard.learning.distillation.synthetic import SyntheticExamples, draw_noise_examples
from overheard.learning.evaluate import accuracy
from overheard.learning.initialization import initial_weights
from overheard.learning.models.mlp import Mlp
from overheard.learning.training_job import ClientTask

TASK = Task((4,), ("a", "b", "c"))
CLASSES = 3
BUILD = partial(Mlp(hidden=(16,)).build, TASK)
START = initial_weights(BUILD, Seed(0))


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


def distil(
    how: DistributionMatching,
    shared: SyntheticExamples,
    pool: Examples = POOL,
    members: list[ClientTask] = CLIENTS,
    number: int = 0,
) -> DistillationResult:
    moments = zero_moments(shared, len(members))
    return how.build_distiller(BUILD, START).distil(
        shared,
        pool,
        members,
        moments,
        round=number,
        rate_scale=how.rate_scale(number),
        seed=Seed(2),
    )


def test_a_model_trained_on_the_matching_set_is_accurate() -> None:
    how = DistributionMatching(samples=2, input_rate=0.3, first_rate=0.1, passes=50, at_once=3)
    shared = draw_noise_examples(TASK, 2, how.first_rate, Seed(1))
    distiller = how.build_distiller(BUILD, START)
    before = accuracy(BUILD, distiller.train(shared.map(lambda one: one[None]))[0], examples(9))
    for number in range(60):
        shared = distil(how, shared, number=number).examples.map(lambda one: one.mean(0))
    (weights,) = distiller.train(shared.map(lambda one: one[None]))
    assert accuracy(BUILD, weights, examples(9)) > 0.95 > before + 0.1


def bare() -> nn.Module:
    """Features are the inputs themselves, so that a step can be computed by hand."""
    return nn.Sequential(nn.Linear(2, 2))


def test_a_step_follows_the_gradient_of_the_distance_of_means() -> None:
    task = Task((2,), ("a", "b"))
    own = Examples(torch.tensor([[4.0, 0.0], [6.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 0, 1]))
    shared = SyntheticExamples(
        torch.zeros(4, 2), one_hot(torch.arange(4) % 2).float(), torch.full((4,), 0.1)
    )
    how = DistributionMatching(samples=2, input_rate=0.5)
    start = initial_weights(bare, Seed(0))
    done = how.build_distiller(bare, start).distil(
        shared,
        own,
        [ClientTask("client/0", torch.arange(3))],
        zero_moments(shared, 1),
        round=0,
        rate_scale=1.0,
        seed=Seed(0),
    )
    # The mean of a's two examples is 0, of the real ones (5, 0): the gradient of 25 for each of
    # the two is 2 * -5 / 2, and the rate is 0.5.
    assert task.classes == 2
    assert done.examples.inputs[0].tolist() == [[2.5, 0], [0, 1], [2.5, 0], [0, 1]]
    assert done.losses.tolist() == [29.0]


def test_results_depend_on_the_presence_but_not_the_frequency_of_a_class() -> None:
    # Copies of the same examples: the mean of a class does not change.
    shared = draw_noise_examples(TASK, 2, 0.01, Seed(1))
    how = DistributionMatching(samples=2, batch=1000)
    once = distil(how, shared, members=[ClientTask("client/0", torch.arange(60))])
    thrice = [row for row in range(60) for _ in range(3 if POOL.labels[row] == 0 else 1)]
    often = distil(how, shared, members=[ClientTask("client/0", torch.tensor(thrice))])
    assert once.examples.inputs.allclose(often.examples.inputs, atol=1e-4)
    without = torch.tensor([row for row in range(60) if POOL.labels[row] != 0])
    without_class = distil(how, shared, members=[ClientTask("client/0", without)])
    assert without_class.examples.inputs[0, 0].equal(shared.inputs[0])
    assert not without_class.examples.inputs[0, 1].equal(shared.inputs[1])


NARROW = partial(Mlp(hidden=(8,)).build, TASK)
NARROW_START = initial_weights(NARROW, Seed(0))


def rounds(count: int, how: Flip):
    distiller = how.build_distiller(NARROW, NARROW_START)
    shared = draw_noise_examples(TASK, how.samples, how.first_rate, Seed(1))
    moments = zero_moments(shared, len(CLIENTS))
    for number in range(count):
        done = distiller.distil(
            shared, POOL, CLIENTS, moments, round=number, rate_scale=1.0, seed=Seed(2)
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
    assert accuracy(NARROW, weights, examples(9)) > 0.9
    noisy = draw_noise_examples(TASK, 2, how.first_rate, Seed(1)).map(lambda one: one[None])
    assert accuracy(NARROW, distiller.train(noisy)[0], examples(9)) < 0.8
    assert done.moments.steps.tolist() == [60, 60]


def test_returns_the_loss_of_the_clients_own_examples() -> None:
    how = Flip(samples=2, batch=1000)
    distiller, _, done = rounds(1, how)
    start = draw_noise_examples(TASK, 2, how.first_rate, Seed(1)).map(lambda one: one[None])
    (weights,) = distiller.train(start)
    model = NARROW()
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
    assert accuracy(NARROW, weights, examples(9)) > 0.9
    sets = shared.map(lambda one: one[None])
    (mine,), (other,) = one_by_one.train(sets), together.train(sets)
    assert not all(mine[name].allclose(other[name], atol=1e-3) for name in mine)
    assert one_by_one.needed_bytes(6, 2) == 3 * together.needed_bytes(6, 2)


def test_rates_are_halved_after_halve_every_rounds() -> None:
    assert [Flip(halve_every=40).rate_scale(n) for n in (0, 39, 40, 80)] == [1, 1, 0.5, 0.25]
    assert Flip(halve_every=0).rate_scale(1000) == 1
