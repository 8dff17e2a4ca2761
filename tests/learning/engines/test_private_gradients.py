"""The steps of DP-SGD: every engine clips, samples and adds noise as a plain loop does."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from overheard.core.errors import PlanError
from overheard.core.examples import Examples, without_classes
from overheard.core.recipe import PrivateSteps, Recipe
from overheard.core.seeds import Seed
from overheard.learning.batches import epoch_batches
from overheard.learning.engines import private_gradients
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from tests.learning.cases import (
    CLIENTS,
    CONVOLUTIONS,
    IMAGES,
    MLP,
    NORMED,
    READING,
    SEED,
    TABLE,
    TEXTS,
    WORDS,
    batch_normed,
    dropping,
    largest_difference,
    pool_of,
    start_of,
)

ONE_SUM = PrivateSteps(clip=1.0, noise_multiplier=0.0, batches=1, sampling="shuffled")
"""One step on all examples, without noise."""


def clipped_sum(build, start, pool: Examples, private: PrivateSteps, engine: str):
    """The sum of clipped gradients: one step at rate 1 goes down by sum / examples."""
    recipe = Recipe(1.0, 1, 1, private_steps=private)
    if pool.float_labels is not None:
        recipe = replace(recipe, loss="squared_error")
    client = ClientTask("client/0", torch.arange(len(pool)))
    (trained,) = train_cohort(
        build, start, pool, [client], recipe, seed=SEED, round=0, engine=engine
    )
    return {name: -len(pool) * one for name, one in trained.delta.items()}


@pytest.mark.parametrize("engine", ["sequential", "stacked"])
def test_clips_the_gradient_of_each_example(engine):
    # At weights 0 the gradient of (w x - y)^2 is -2 y x: (-6, -8) of norm 10 becomes
    # (-.6, -.8), and (-.6, -.8) and (0, -.5) stay.
    inputs = torch.tensor([[3.0, 4.0], [3.0, 4.0], [0.0, 1.0]]).double()
    pool = without_classes(inputs, torch.tensor([[1.0], [0.1], [0.25]]))
    start = {"weight": torch.zeros(1, 2).double()}
    build = partial(nn.Linear, 2, 1, bias=False)
    found = clipped_sum(build, start, pool, ONE_SUM, engine)
    assert found["weight"][0].tolist() == pytest.approx([-1.2, -2.1], abs=1e-6)


def small_mlp() -> nn.Module:
    """A network that stacks run by hand."""
    return nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 2))


def small_convolutions() -> nn.Module:
    """A network that stacks run by `vmap`."""
    layers = (nn.Conv2d(1, 2, 2), nn.GroupNorm(1, 2), nn.Tanh(), nn.Flatten())
    return nn.Sequential(*layers, nn.Linear(8, 2))


SUMS_OF_OPACUS = {
    small_mlp: (
        *(-0.298899655, -0.03020751, 0.26625728, -0.404410142, -0.097130382, 0.299450604),
        *(0.667727317, 0.539441114),
        *(-0.097009597, 0.203931235, 0.097009597, -0.203931235),
        *(0.453402337, -0.453402337),
    ),
    small_convolutions: (
        *(0.482794091, 0.259650983, -0.478164409, -0.314492624),
        *(-0.41809745, -0.174743535, 0.422492437, 0.227278494),
        *(-0.440990119, 0.440990119, 0.144015009, -0.97409157, 0.076214995, -0.64610665),
        *(0.023680971, -0.117312163, -0.171150641, -0.010715767),
        *(-0.450568554, -0.411050198, 0.412456072, 0.560235937),
        *(-0.023680971, 0.117312163, 0.171150641, 0.010715767),
        *(0.450568554, 0.411050198, -0.412456072, -0.560235937),
        *(0.121799618, -0.121799618),
    ),
}
"""`DPOptimizer.summed_grad` of Opacus 1.5.4 (commit 4d0ebc8) at a clip of 1, in float64."""


def waves(*shape: int, start: int = 0) -> Tensor:
    """The sines of consecutive whole numbers."""
    size = torch.Size(shape).numel()
    return torch.arange(start, start + size, dtype=torch.float64).sin().view(shape)


@pytest.mark.parametrize("engine", ["sequential", "stacked"])
@pytest.mark.parametrize("build", SUMS_OF_OPACUS)
def test_clipped_sums_equal_those_of_opacus(build, engine):
    numbers, start = 0, dict[str, Tensor]()
    for name, one in build().named_parameters():
        start[name] = waves(*one.shape, start=numbers)
        numbers += one.numel()
    shape = (3,) if build is small_mlp else (1, 3, 3)
    pool = Examples(waves(6, *shape, start=100), torch.tensor([0, 1, 1, 0, 1, 1]))
    found = clipped_sum(build, start, pool, ONE_SUM, engine)
    flat = torch.cat([found[name].flatten() for name in start])
    assert flat.tolist() == pytest.approx(list(SUMS_OF_OPACUS[build]), abs=1e-6)


def private_loop(
    build, pool: Examples, client: ClientTask, recipe: Recipe
) -> Mapping[str, Tensor]:
    """The change of a client that trains by a loop over examples, with torch's optimizer."""
    model, start, private = build().double(), start_of(build), recipe.private_steps
    model.load_state_dict(dict(start))
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=recipe.rate, momentum=recipe.momentum)
    noise = SEED.child("gradient noise", 3, client.name).generator()
    for epoch in range(recipe.epochs):
        for batch in epoch_batches(recipe, SEED, 3, client.name, epoch, len(client.rows)):
            sums = [torch.zeros_like(one) for one in parameters]
            for row in client.rows[batch].tolist():
                logits = model(pool.inputs[row : row + 1])
                loss = functional.cross_entropy(logits, pool.labels[row : row + 1])
                slopes = torch.autograd.grad(loss, parameters)
                norm = sum(float(one.square().sum()) for one in slopes) ** 0.5
                factor = min(1.0, private.clip / (norm + 1e-6))
                sums = [total + factor * one for total, one in zip(sums, slopes, strict=True)]
            for parameter, total in zip(parameters, sums, strict=True):
                draw = torch.randn(total.shape, generator=noise, dtype=total.dtype)
                total = total + private.noise_multiplier * private.clip * draw  # noqa: PLW2901
                parameter.grad = total / (len(client.rows) / private.batches)
            optimizer.step()
    state = model.state_dict()
    return {name: state[name] - begin for name, begin in start.items()}


class Scaled(nn.Module):
    """A network with a parameter that is a single number."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.last = nn.Linear(6, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.last(inputs) * self.scale


CASES = {
    "mlp": (MLP, TABLE, ("sequential", "stacked", "auto")),
    "convolutions": (CONVOLUTIONS, IMAGES, ("sequential", "stacked", "auto")),
    "instance norm": (NORMED, IMAGES, ("sequential", "stacked")),
    "words": (WORDS, TEXTS, ("sequential", "auto")),
    "lstm": (READING, TEXTS, ("auto",)),
    "table alone": (partial(nn.EmbeddingBag, 30, 3, mode="sum"), TEXTS, ("auto",)),
    "number": (Scaled, TABLE, ("sequential", "stacked")),
}


@pytest.mark.parametrize("sampling", ["poisson", "shuffled"])
@pytest.mark.parametrize("case", CASES)
def test_every_engine_equals_a_loop_over_examples(case, sampling, monkeypatch):
    # Gradients of several slices of a batch add up.
    monkeypatch.setitem(private_gradients.SLICE_BYTES, "cpu", 2**13)
    build, task, engines = CASES[case]
    # The client with 3 examples has empty batches.
    private = PrivateSteps(0.7, 0.5, batches=4, sampling=sampling)
    recipe = Recipe(0.1, epochs=2, batch=1, momentum=0.9, private_steps=private)
    pool = pool_of(task, torch.float64)
    expected = [private_loop(build, pool, one, recipe) for one in CLIENTS]
    for engine in engines:
        trained = train_cohort(
            build,
            start_of(build),
            pool,
            CLIENTS,
            recipe,
            seed=SEED,
            round=3,
            engine=engine,
        )
        for one, other in zip(trained, expected, strict=True):
            assert largest_difference(one.delta, other) < 1e-11, engine
            assert one.client.steps_in(recipe) == 8


def test_dropout_is_that_of_each_engine():
    recipe = Recipe(0.1, 2, 1, private_steps=PrivateSteps(0.7, 0.5, 4, "poisson"))
    pool = pool_of(TABLE, torch.float64)
    alone, together = (
        train_cohort(
            dropping, start_of(dropping), pool, CLIENTS, recipe, seed=SEED, round=3, engine=one
        )
        for one in ("sequential", "auto")
    )
    for one, other in zip(alone, together, strict=True):
        assert largest_difference(one.delta, other.delta) < 1e-12
        assert one.loss == pytest.approx(other.loss, abs=1e-12)


@pytest.mark.parametrize("engine", ["sequential", "stacked"])
def test_an_empty_batch_is_a_step_of_noise_of_the_stated_scale(engine):
    # One example in 400 batches: nearly all steps are of noise alone, and its deviation of
    # multiplier * clip = 6 is divided by the expected 1 / 400 examples of a batch.
    private = PrivateSteps(2.0, 3.0, batches=400, sampling="poisson")
    recipe = Recipe(1.0, 1, 1, private_steps=private)
    pool = pool_of(TABLE, torch.float64)
    build = partial(nn.Linear, 6, 3)
    (trained,) = train_cohort(
        build,
        start_of(build),
        pool,
        [ClientTask("client/0", torch.arange(1))],
        recipe,
        seed=SEED,
        round=0,
        engine=engine,
    )
    numbers = torch.cat([one.flatten() for one in trained.delta.values()])  # 21 numbers
    scaled = numbers / (6 * 400 * 400**0.5)
    # The root mean square of 21 Gaussians is within .5 of 1 but for one seed in 1,000.
    assert float(scaled.square().mean().sqrt()) == pytest.approx(1, abs=0.5)


def test_poisson_batches_have_the_stated_rate_and_shuffled_ones_each_example_once():
    private = PrivateSteps(1.0, 1.0, batches=4, sampling="poisson")
    recipe = Recipe(1.0, 1, 1, private_steps=private)
    sizes = [
        len(batch)
        for epoch in range(500)
        for batch in epoch_batches(recipe, Seed(0), 0, "client/0", epoch, 100)
    ]
    spread = torch.tensor(sizes).double()
    # Of 2,000 binomial sizes, the mean deviates by 4.33 / 44.7 and the variance is 18.75.
    assert float(spread.mean()) == pytest.approx(25, abs=0.4)
    assert float(spread.var()) == pytest.approx(18.75, rel=0.15)
    shuffled = replace(recipe, private_steps=replace(private, sampling="shuffled"))
    batches = epoch_batches(shuffled, Seed(0), 0, "client/0", 0, 10)
    assert [len(one) for one in batches] == [3, 3, 2, 2]
    assert sorted(torch.cat(batches).tolist()) == list(range(10))


def with_buffer() -> nn.Module:
    """A network with a buffer that is sent."""
    model = nn.Sequential(nn.Linear(6, 3))
    model.register_buffer("mean", torch.zeros(6))
    return model


@pytest.mark.parametrize(
    ("build", "task", "mend"),
    [(batch_normed, IMAGES, "group norm"), (with_buffer, TABLE, "persistent=False")],
)
def test_refuses_a_network_that_sends_more_than_clipped_gradients(build, task, mend):
    recipe = Recipe(0.1, 1, 1, private_steps=ONE_SUM)
    pool = pool_of(task, torch.float64)
    with pytest.raises(PlanError, match=mend):
        list(train_cohort(build, start_of(build), pool, CLIENTS, recipe, seed=SEED, round=0))
