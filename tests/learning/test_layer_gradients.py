"""Gradients by layer equal those that autograd computes for one example after the other."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence

from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.initialization import fresh_model
from overheard.learning.layer_gradients import (
    LayerGradients,
    activation_bytes,
    find_layers,
    layer_gradients,
)
from overheard.learning.models.alexnet import AlexNet
from overheard.learning.models.conv_net import ConvNet
from overheard.learning.models.decaf_conv2 import DecafConv2
from overheard.learning.models.ldia_conv import LdiaConv
from overheard.learning.models.lstm import Lstm
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.mobilenet import MobileNet
from overheard.learning.models.resnet18 import ResNet18
from overheard.learning.models.shift_conv import ShiftConv
from overheard.learning.models.text_bag import TextBag
from overheard.learning.models.tiny_resnet import TinyResnet
from overheard.learning.models.transformer import Transformer
from overheard.learning.sent_tensors import load_sent_tensors, trainable_parameters
from tests.learning.cases import IMAGES, TEXTS, batch_normed, pool_of, start_of

RECIPE = Recipe(rate=0.1, epochs=1, batch=4, label_smoothing=0.1)
ADAPTED = ("query", "key", "value", "output", "widen", "narrow")


class Reading(nn.Module):
    """Word vectors and a network that reads them: (examples, words, 4)."""

    def __init__(self, reader: nn.Module) -> None:
        super().__init__()
        self.table = nn.Embedding(30, 4, padding_idx=-30)
        self.reader = reader
        self.last = nn.LazyLinear(3)
        with torch.no_grad():
            self(torch.zeros(1, 7, dtype=torch.int64))

    def forward(self, tokens: Tensor) -> Tensor:
        states = self.reader(self.table(tokens))
        states = states[0] if isinstance(states, tuple) else states
        return self.last(states.flatten(1))


class Experts(nn.Module):
    """Two experts, each for the texts that begin with its words; the second has a table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(30, 4)
        self.first = nn.Linear(4, 3)
        self.words, self.second = nn.Embedding(30, 2), nn.Linear(2, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        return torch.stack([self.of_text(one) for one in tokens])

    def of_text(self, tokens: Tensor) -> Tensor:
        if int(tokens[0]) % 2:
            return self.first(self.table(tokens).mean(0))
        return self.second(self.words(tokens).mean(0))


class Masked(nn.Module):
    """Texts whose padding is masked, if a batch has any, as Hugging Face's networks do.

    Args:
        is_apart: whether each text is read by itself; else each is compared with the others.

    """

    calls = 0

    def __init__(self, is_apart: bool = True) -> None:
        super().__init__()
        self.table = nn.Embedding(30, 4)
        self.last = nn.Linear(4, 3)
        self.is_apart = is_apart

    def forward(self, tokens: Tensor) -> Tensor:
        Masked.calls += 1
        states = self.table(tokens)
        if not bool((tokens > 10).all()):
            states = states * (tokens > 10).unsqueeze(2)
        outputs: Tensor = self.last(states.mean(1))
        return outputs if self.is_apart else outputs - outputs.mean(0)


class Packed(nn.Module):
    """An LSTM over texts that are packed by length, which reads numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(30, 4)
        self.reader = nn.LSTM(4, 5, batch_first=True)
        self.last = nn.Linear(5, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        lengths = (tokens > 10).sum(1).clamp(min=1)
        packed = pack_padded_sequence(
            self.table(tokens), lengths.tolist(), batch_first=True, enforce_sorted=False
        )
        return self.last(self.reader(packed)[1][0][0])


class Unusual(nn.Module):
    """A table that is also the last layer, a layer called twice, and words before examples."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(30, 4)
        self.twice = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.attention = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
        self.frozen = nn.Linear(4, 4)
        self.frozen.weight.requires_grad_(requires_grad=False)
        self.never = nn.Linear(2, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        states = self.attention(self.table(tokens).transpose(0, 1))
        states = self.twice(self.twice(states).relu_() * self.scale).mean(0)
        return functional.linear(self.frozen(states), self.table.weight)[:, :3]


def grouped() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, (3, 4), padding="same", dilation=(1, 2)),
        nn.GroupNorm(2, 4),
        nn.ReLU(inplace=True),
        nn.Conv2d(4, 6, 2, stride=2, groups=2, padding=1, padding_mode="circular"),
        nn.BatchNorm2d(6),
        nn.Flatten(),
        nn.LazyLinear(3),
    )


def lazily(build) -> nn.Module:
    network = build()
    with torch.no_grad():
        network(torch.zeros(2, 2, 8, 8))
    return network


def gru() -> nn.Module:
    return Reading(nn.GRU(4, 5, num_layers=2, bidirectional=True))


def lstm() -> nn.Module:
    return Reading(
        nn.LSTM(4, 5, num_layers=2, bias=False, bidirectional=True, batch_first=True)
    )


def sum_of_words() -> nn.Module:
    return nn.Sequential(nn.EmbeddingBag(30, 4, mode="sum"), nn.Tanh(), nn.Linear(4, 3))


BIG = Task((2, 32, 32), ("a", "b", "c"))

NETWORKS = {
    "mlp": (Mlp(hidden=(5, 4)).build, IMAGES),
    "decaf": (DecafConv2(first=3, second=4, hidden=5).build, IMAGES),
    "instance norm": (ConvNet(blocks=2, width=8).build, IMAGES),
    "ldia": (LdiaConv(channels=3).build, BIG),
    "residual": (TinyResnet().build, IMAGES),
    "mobilenet": (MobileNet(alpha=0.25).build, IMAGES),
    "bag": (TextBag(dim=4, hidden=5).build, TEXTS),
    "lstm": (Lstm(dim=4, hidden=5).build, TEXTS),
    "transformer": (Transformer(width=8, depth=2, heads=2).build, TEXTS),
    "adapters": (
        Transformer(width=8, depth=1, heads=2, rank=2, adapted=ADAPTED).build,
        TEXTS,
    ),
    "batch norm": (lambda _: batch_normed(), IMAGES),
    "groups and padding by name": (lambda _: lazily(grouped), IMAGES),
    "two layers, both directions": (lambda _: lstm(), TEXTS),
    "gru": (lambda _: gru(), TEXTS),
    "packed": (lambda _: Packed(), TEXTS),
    "masked": (lambda _: Masked(), TEXTS),
    "masked together": (lambda _: Masked(is_apart=False), TEXTS),
    "experts": (lambda _: Experts(), TEXTS),
    "unusual": (lambda _: Unusual(), TEXTS),
    "sum of words": (lambda _: sum_of_words(), TEXTS),
}


LARGE = {
    "alexnet": (AlexNet().build, BIG),
    "resnet18": (ResNet18().build, BIG),
    "shift_conv": (ShiftConv().build, BIG),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", LARGE)
def test_layers_of_large_networks_have_them_too(name: str, monkeypatch) -> None:
    monkeypatch.setitem(NETWORKS, name, LARGE[name])
    test_layers_have_the_gradients_of_all_parameters_that_train(name)


@pytest.mark.parametrize("name", NETWORKS)
def test_layers_have_the_gradients_of_all_parameters_that_train(name: str) -> None:
    builder, task = NETWORKS[name]
    build = partial(builder, task)
    generator = Seed(3).generator()
    weights = {
        key: one + 0.1 * torch.rand(one.shape, generator=generator, dtype=one.dtype)
        for key, one in start_of(build).items()
    }
    pool = pool_of(task, torch.float64, examples=5)
    found = layer_gradients(build, weights, pool, RECIPE)
    model = fresh_model(build, Seed(0)).double().eval()
    load_sent_tensors(model, weights)
    parameters = trainable_parameters(model)
    sent = [one for names in found for one in (names.weight, names.bias) if one is not None]
    assert sorted(sent) == sorted(parameters)
    for number in range(len(pool)):
        one = pool.take(torch.tensor([number]))
        loss = functional.cross_entropy(model(one.inputs), one.labels, label_smoothing=0.1)
        gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
        expected = {
            key: torch.zeros_like(parameter) if gradient is None else gradient
            for (key, parameter), gradient in zip(parameters.items(), gradients, strict=True)
        }
        for names, of_layer in found.items():
            torch.testing.assert_close(
                {names: of_layer.matrices()[number]},
                {names: names.matrix_of(expected)},
                atol=1e-9,
                rtol=1e-9,
            )


@pytest.mark.parametrize("positions", [1, 2, 7])
def test_projected_gradients_are_whole_ones_on_the_axes(positions: int) -> None:
    generator = Seed(3).generator()
    inputs, slopes, axes, axes2 = (
        torch.randn(shape, generator=generator, dtype=torch.float64)
        for shape in ((4, positions, 5), (4, positions, 6), (5, 3), (6, 2))
    )
    whole = LayerGradients(inputs, slopes)
    found = whole.projected(axes, axes2).matrices()
    torch.testing.assert_close(found, axes2.T @ whole.matrices() @ axes)


def test_texts_that_a_network_keeps_apart_are_run_in_one_batch() -> None:
    pool = pool_of(TEXTS, torch.float64, examples=40)
    Masked.calls = 0
    layer_gradients(Masked, start_of(Masked), pool, RECIPE)
    # The survey, the attempt of `vmap`, the batch, and three texts alone.
    assert Masked.calls <= 6


def test_the_memory_of_a_tied_table_grows_with_its_own_size_only() -> None:
    pool = pool_of(TEXTS, torch.float64, examples=1)
    found = layer_gradients(Unusual, start_of(Unusual), pool, RECIPE)
    (table,) = [one for names, one in found.items() if names.weight == "table.weight"]
    assert table.nbytes == 8 * (30 * 4 + 4 * 4)


def test_experts_that_examples_do_not_reach_are_the_same_layers() -> None:
    pool, start = pool_of(TEXTS, torch.float64, examples=8), start_of(Experts)
    is_first = pool.inputs[:, 0] % 2 == 1
    assert 0 < int(is_first.sum()) < len(pool)
    layers = find_layers(Experts, start, pool, RECIPE)
    assert [one.bias for one in layers] == [None, "first.bias", None, "second.bias"]
    for rows in (torch.arange(len(pool)), is_first.nonzero()[:, 0]):
        found = layer_gradients(Experts, start, pool.take(rows), RECIPE, layers)
        assert tuple(found) == layers


def test_the_memory_of_activations_is_that_of_tensors_kept_for_gradients() -> None:
    def build() -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(12, 50), nn.Tanh(), nn.Linear(50, 3))

    task = Task((12,), ("a", "b", "c"))
    weights = start_of(build)
    one, four = (
        activation_bytes(build, weights, pool_of(task, torch.float64, examples=n), RECIPE)
        for n in (1, 4)
    )
    # In float64 12 inputs and 50 outputs of tanh, but not the 803 weights.
    assert 8 * 62 <= one < 8 * 200
    assert four == pytest.approx(4 * one, rel=0.1)
