"""Small federations whose truth is known, as a framework would have sent and saved them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Literal

import torch
from torch import Tensor, nn

from tests.readings import networks
from tests.readings.networks import CLASSES, WIDTH

SHARES = (
    (0.8, 0.1, 0.1),
    (0.1, 0.8, 0.1),
    (0.1, 0.1, 0.8),
    (0.45, 0.45, 0.1),
    (0.1, 0.45, 0.45),
    (0.6, 0.3, 0.1),
    (0.2, 0.1, 0.7),
    (0.1, 0.6, 0.3),
)
SIZES = (40, 56, 64, 48, 72, 60, 52, 68)
ROUNDS = 4
RATE = 0.1

Tensors = Mapping[str, Tensor]
Channel = Literal["import", "flower_old", "flower_new", "nvflare"]


@dataclass(frozen=True)
class Reply:
    """What a client sent back: its weights, and its number of examples (None = hidden)."""

    weights: Tensors
    examples: int | None


@dataclass(frozen=True)
class Round:
    """The model that was sent, and the replies by client; None = it was asked and failed."""

    start: Tensors
    replies: Mapping[str, Reply | None]


@dataclass(frozen=True)
class SavedRun:
    """A run as it is saved or recorded.

    Args:
        name: of the federation.
        network: name of its network in `networks`.
        rounds: what travelled.
        final: the last model.
        labels: by client, how many examples of each class it held.
        channel: what records it.
        recipe: how clients trained, as in a plan.
        about: further keys of about.toml.
        is_listed: whether the server's step is one that the check of a recording knows.
        again: simulates the run again, with changes of the arguments of `simulate`.

    """

    name: str
    network: str
    rounds: tuple[Round, ...]
    final: Tensors
    labels: Mapping[str, tuple[int, ...]]
    channel: Channel = "import"
    recipe: Mapping[str, object] = field(default_factory=dict)
    about: Mapping[str, object] = field(default_factory=dict)
    is_listed: bool = True
    again: Callable[..., "SavedRun"] | None = None


def examples_of(shares: Sequence[float], count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw examples of three classes, each around a point of its own."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.multinomial(torch.tensor(shares), count, True, generator=generator)
    noise = torch.randn(count, WIDTH, generator=generator)
    return noise + 2 * torch.eye(WIDTH)[labels], labels


MakeOptimizer = Callable[[Sequence[nn.Parameter]], torch.optim.Optimizer]
Step = Callable[[Tensors, Sequence[Reply]], Tensors]
"""Returns the next model from the model and the replies."""


def weighted_mean(replies: Sequence[Reply]) -> Tensors:
    """Return the mean of weights by numbers of examples, as FedAvg takes it."""
    total = sum(one.examples or 0 for one in replies)
    return {
        name: sum(one.weights[name] * ((one.examples or 0) / total) for one in replies)
        for name in replies[0].weights
    }


def fed_avg(start: Tensors, replies: Sequence[Reply]) -> Tensors:
    """The server of FedAvg."""
    return weighted_mean(replies)


class ServerMomentum:
    """The server of FedAvgM, with rate 1."""

    def __init__(self, momentum: float) -> None:
        self.momentum, self.velocity = momentum, dict[str, Tensor]()

    def __call__(self, start: Tensors, replies: Sequence[Reply]) -> Tensors:
        """Move along the velocity."""
        mean = weighted_mean(replies)
        self.velocity = {
            name: self.momentum * self.velocity.get(name, torch.zeros(())) + mean[name] - weight
            for name, weight in start.items()
        }
        return {name: weight + self.velocity[name] for name, weight in start.items()}


class ServerNoise:
    """A server that clips the updates, and adds noise to their plain mean (DP-FedAvg)."""

    def __init__(self, clip: float, multiplier: float) -> None:
        self.clip, self.multiplier = clip, multiplier
        self.generator = torch.Generator().manual_seed(3)

    def __call__(self, start: Tensors, replies: Sequence[Reply]) -> Tensors:
        """Take the mean of updates that clients have clipped, and add noise."""
        scale = self.multiplier * self.clip / len(replies)
        return {
            name: weight
            + sum(one.weights[name] - weight for one in replies) / len(replies)
            + scale * torch.randn(weight.shape, generator=self.generator)
            for name, weight in start.items()
        }


def clipped(start: Tensors, end: Tensors, clip: float) -> Tensors:
    """Return the weights whose difference from the start has a norm of at most `clip`."""
    norm = torch.stack([(end[name] - start[name]).norm() for name in start]).norm()
    factor = min(1.0, clip / float(norm))
    return {name: weight + factor * (end[name] - weight) for name, weight in start.items()}


def train(
    network: nn.Module, start: Tensors, held: tuple[Tensor, Tensor], make: MakeOptimizer
) -> Tensors:
    """Train one epoch in batches of 16 from these weights, and return what travels back."""
    network.load_state_dict(dict(start), strict=False)
    trained = [one for one in network.parameters() if one.requires_grad]
    optimizer = make(trained)
    inputs, labels = held
    for first in range(0, len(labels) - 1, 16):
        rows = slice(first, first + 16)
        if len(labels[rows]) > 1:  # a batch norm needs two
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(inputs[rows]), labels[rows]).backward()
            optimizer.step()
    return sent(network)


def sent(network: nn.Module) -> Tensors:
    """Return what travels: the trained parameters, and floating-point buffers."""
    frozen = {name for name, one in network.named_parameters() if not one.requires_grad}
    return {
        name: one.detach().clone()
        for name, one in network.state_dict().items()
        if name not in frozen and one.is_floating_point()
    }


def sgd(parameters: Sequence[nn.Parameter]) -> torch.optim.Optimizer:
    """Plain SGD."""
    return torch.optim.SGD(parameters, lr=RATE)


def simulate(
    name: str,
    network: str = "linear",
    make: MakeOptimizer = sgd,
    make_step: Callable[[], Step] = lambda: fed_avg,
    *,
    seed: int = 0,
    asked: Callable[[int, int], bool] = lambda number, client: client < 6,
    failed: Callable[[int, int], bool] = lambda number, client: False,
    late: Callable[[int, int], bool] = lambda number, client: False,
    clip: float | None = None,
    encode: Callable[[Tensor, Tensor], Tensor] = lambda inputs, labels: inputs,
) -> SavedRun:
    """Run a federation; clients that are late in a round begin from the broadcast before it."""
    same = {"make": make, "make_step": make_step, "seed": seed, "asked": asked}
    again = partial(simulate, name, network, failed=failed, clip=clip, encode=encode, **same)
    step = make_step()
    torch.manual_seed(seed)
    model = getattr(networks, network)()
    start, rounds = sent(model), list[Round]()
    drawn = [examples_of(SHARES[k], SIZES[k], 10 + k + 100 * seed) for k in range(len(SHARES))]
    held = [(encode(inputs, labels), labels) for inputs, labels in drawn]
    for number in range(ROUNDS):
        replies = dict[str, Reply | None]()
        for client in range(len(SHARES)):
            if not asked(number, client):
                continue
            if failed(number, client):
                replies[str(client)] = None
                continue
            is_late = number > 0 and late(number, client)
            begin = rounds[-1].start if is_late else start
            end = train(model, begin, held[client], make)
            end = end if clip is None else clipped(begin, end, clip)
            replies[str(client)] = Reply(end, SIZES[client])
        rounds.append(Round(start, replies))
        start = step(start, [one for one in replies.values() if one is not None])
    labels = {
        str(k): tuple(torch.bincount(y, minlength=CLASSES).tolist())
        for k, (_, y) in enumerate(held)
        if any(str(k) in one.replies for one in rounds)
    }
    return SavedRun(name, network, tuple(rounds), start, labels, again=again)


def _weights() -> SavedRun:
    return simulate("weights")


def _momentum() -> SavedRun:
    def make(parameters: Sequence[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=RATE / 4, momentum=0.9)

    recipe = {"rate": RATE / 4, "momentum": 0.9}
    return replace(simulate("momentum", "dense", make, seed=1), recipe=recipe)


def _adam() -> SavedRun:
    def make(parameters: Sequence[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, lr=0.02)

    recipe = {"rate": 0.02, "optimizer": "adam"}
    return replace(simulate("adam", "dense", make, seed=2), recipe=recipe)


def _adamw() -> SavedRun:
    def make(parameters: Sequence[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, lr=0.02, weight_decay=0.01)

    recipe = {"rate": 0.02, "optimizer": "adamw", "weight_decay": 0.01}
    return replace(simulate("adamw", "dense", make, seed=3), recipe=recipe)


def _server_momentum() -> SavedRun:
    return simulate("server momentum", make_step=lambda: ServerMomentum(0.5), seed=4)


def _batch_norm() -> SavedRun:
    return simulate("batch norm", "normed", seed=5)


def _lora() -> SavedRun:
    return simulate("LoRA", "Adapted", seed=6)


def _partial() -> SavedRun:
    return simulate(
        "partial participation",
        seed=7,
        asked=lambda number, client: (client + number) % 2 == 0 or client < 2,
        failed=lambda number, client: number == 1 and client == 3,
    )


CLIP, NOISE, EPSILON = 0.2, 0.5, 40.0
"""Of the federation with DP: it spends less than this epsilon in all rounds."""


def _dp() -> SavedRun:
    run = simulate("DP", make_step=lambda: ServerNoise(CLIP, NOISE), seed=8, clip=CLIP)
    mechanism = {
        "noise_multiplier": NOISE,
        "clip": CLIP,
        "delta": 1e-5,
        "noised_at": "server",
        "bounded_at": "client",
        "moves": 1.0,
        "stated": EPSILON,
    }
    defense = {
        "name": "central DP",
        "settings": f"CentralDP(clip={CLIP}, noise={NOISE})",
        "enforced_at": "server",
        "switched_off_by": "the server's owner",
        "mechanism": mechanism,
    }
    return replace(run, about={"defenses": [defense], "rounds": ROUNDS})


def _nvflare() -> SavedRun:
    return replace(simulate("NVFlare", seed=9), channel="nvflare")


def _flower_old() -> SavedRun:
    return replace(simulate("Flower, old", "dense", seed=10), channel="flower_old")


def _flower_new() -> SavedRun:
    return replace(simulate("Flower, new", seed=11), channel="flower_new")


_FEDERATIONS = (
    _weights,
    _momentum,
    _adam,
    _adamw,
    _server_momentum,
    _batch_norm,
    _lora,
    _partial,
    _dp,
    _nvflare,
    _flower_old,
    _flower_new,
)


@cache
def federations() -> tuple[SavedRun, ...]:
    """Return all federations."""
    return tuple(make() for make in _FEDERATIONS)
