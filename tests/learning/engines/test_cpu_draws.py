"""What a network draws in training is the same on every device; see tests/test_devices.py."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from overheard.core.recipe import PrivateSteps, Recipe
from overheard.core.task import Task
from overheard.learning.engines.cpu_draws import drawing_on_cpu, draws_numbers
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from tests.learning.cases import (
    CONVOLUTIONS,
    IMAGES,
    MLP,
    NORMED,
    READING,
    SEED,
    TABLE,
    TEXTS,
    WORDS,
    dropping,
    largest_difference,
    pool_of,
    start_of,
)
from tests.pretended_device import pretended_device

RECIPE = Recipe(rate=0.1, epochs=2, batch=4)
CLIENT = ClientTask("client/0", torch.arange(6))


class Applied(nn.Module):
    """A layer that applies a function, which no list of layers shows to be random."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self._function = function

    def forward(self, numbers: Tensor) -> Tensor:
        return self._function(numbers)


def convolving(*layers: nn.Module) -> nn.Module:
    """A network for images with these layers after a convolution."""
    return nn.Sequential(nn.Conv2d(2, 5, 3), *layers, nn.Flatten(), nn.Linear(180, 3))


def normed_and_dropped() -> nn.Module:
    """The norms of a GPU return maps with their channels first, those of the trainer last."""
    return convolving(nn.GroupNorm(5, 5), Applied(as_on_a_gpu), nn.Dropout(0.5))


def as_on_a_gpu(maps: Tensor) -> Tensor:
    """The memory order that norms of a GPU return."""
    return maps if maps.device.type == "cpu" else maps.contiguous()


class Reader(nn.Module):
    """Two recurrent layers with dropout between them."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 4)
        self.layers = nn.LSTM(4, 5, num_layers=2, dropout=0.5, batch_first=True)
        self.last = nn.Linear(5, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        states, _ = self.layers(self.words(tokens))
        logits: Tensor = self.last(states[:, -1])
        return logits


class Attentive(nn.Module):
    """Attention with dropout of its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, dropout=0.5, batch_first=True)
        self.last = nn.Linear(12, 3)

    def forward(self, numbers: Tensor) -> Tensor:
        parts = torch.stack((numbers, numbers + 1), 1)
        mixed, _ = self.attention(parts, parts, parts, need_weights=False)
        logits: Tensor = self.last(mixed.flatten(1))
        return logits


def around(layer: nn.Module) -> nn.Module:
    """A network for tables with this layer within."""
    return nn.Sequential(nn.Linear(6, 8), layer, nn.Linear(8, 3))


RANDOM: dict[str, tuple[Callable[[], nn.Module], Task]] = {
    "dropout": (dropping, TABLE),
    "dropout of maps": (normed_and_dropped, IMAGES),
    "dropout of channels": (lambda: convolving(nn.Dropout2d(0.5)), IMAGES),
    "alpha dropout": (lambda: around(nn.AlphaDropout(0.5)), TABLE),
    "a random slope": (lambda: around(nn.RReLU()), TABLE),
    "dropout in a function": (
        lambda: around(Applied(lambda one: functional.dropout(one, 0.5))),
        TABLE,
    ),
    "noise in a function": (
        lambda: around(Applied(lambda one: one + torch.randn_like(one))),
        TABLE,
    ),
    "noise of a shape": (
        lambda: around(Applied(lambda one: one * torch.rand(8, device=one.device))),
        TABLE,
    ),
    "dropout between recurrent layers": (Reader, TEXTS),
    "dropout in attention": (Attentive, TABLE),
}
"""Networks that draw random numbers in training."""


def train(
    build: Callable[[], nn.Module], task: Task, device: torch.device | str, recipe: Recipe
) -> dict[str, Tensor]:
    start, pool = start_of(build, torch.float32), pool_of(task, torch.float32, 6)
    (result,) = train_cohort(
        build,
        start,
        pool,
        [CLIENT],
        recipe,
        seed=SEED,
        round=0,
        engine="sequential",
        device=device,
    )
    return dict(result.delta)


@pytest.mark.parametrize("name", RANDOM)
def test_a_network_draws_the_numbers_of_a_cpu(name: str) -> None:
    build, task = RANDOM[name]
    here = train(build, task, "cpu", RECIPE)
    with pretended_device() as device:
        there = train(build, task, device, RECIPE)
    assert largest_difference(here, there) < 1e-5


def test_clipped_gradients_draw_the_numbers_of_a_cpu() -> None:
    private = Recipe(
        rate=0.1, epochs=1, batch=4, private_steps=PrivateSteps(1, 1, 2, "poisson")
    )
    here = train(dropping, TABLE, "cpu", private)
    with pretended_device() as device:
        there = train(dropping, TABLE, device, private)
    assert largest_difference(here, there) < 1e-5


def test_the_fused_dropout_of_gpus_keeps_what_a_cpu_keeps() -> None:
    """`nn.Dropout` becomes this operation on a GPU alone."""

    def fused(numbers: Tensor) -> Tensor:
        kept, _ = torch.native_dropout(numbers, 0.5, True)
        return kept

    def plain(numbers: Tensor) -> Tensor:
        return functional.dropout(numbers, 0.5)

    here = train(lambda: around(Applied(plain)), TABLE, "cpu", RECIPE)
    with pretended_device() as device:
        there = train(lambda: around(Applied(fused)), TABLE, device, RECIPE)
    assert largest_difference(here, there) < 1e-5


@pytest.mark.parametrize("is_random", [True, False])
def test_networks_that_draw_are_told_from_others(is_random: bool) -> None:
    others = [(MLP, TABLE), (CONVOLUTIONS, IMAGES), (NORMED, IMAGES), (READING, TEXTS)]
    others.append((WORDS, TEXTS))
    with pretended_device() as device:
        for build, task in RANDOM.values() if is_random else others:
            inputs = pool_of(task, torch.float32, 2).inputs.to(device)
            assert draws_numbers(build().to(device).train(), inputs) == is_random


class Draws(TorchDispatchMode):
    """Records the operations that draw numbers, with the devices of their tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[tuple[str, str]] = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded in function.tags:
            tensors = [one for one in tree_leaves(result) if isinstance(one, Tensor)]
            self.found.update((str(function), one.device.type) for one in tensors)
        return result


@pytest.mark.skipif(torch.version.cuda is None, reason="needs torch for CUDA, but no GPU")
@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor:UserWarning")
def test_torch_for_cuda_draws_on_the_cpu_alone(name: str) -> None:
    """Torch takes other operations on a GPU, also for tensors without numbers."""
    build, task = RANDOM[name]
    with FakeTensorMode(), torch.no_grad(), Draws() as draws:
        with torch.device("cuda"):
            model = build().train()
            if task.vocabulary is None:
                inputs = torch.zeros(4, *task.shape)
            else:
                inputs = torch.zeros(4, *task.shape, dtype=torch.int64)
        draws.found.clear()
        with drawing_on_cpu(model) as made:
            assert model(inputs).is_cuda
    assert made.were_made
    assert {device for _, device in draws.found} == {"cpu"}
