"""Runs whose messages are drawn on the spot, for the rules of the doctor."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor

from overheard.core.accounting.accountant import account_mechanism
from overheard.core.defense import RunParameters
from overheard.core.mechanism import Mechanism
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.doctor.recorded.evidence import (
    Fault,
    RunEvidence,
    RunRule,
    StatedMechanism,
)

CENTRAL = Mechanism(1.0, 1.0, 1e-5, "server", "server", unproven="weights are not checked")
"""What is recorded of Flower's wrapper with clipping at the server."""

WRAPPER = (
    "DifferentialPrivacyServerSideFixedClipping(noise_multiplier=1.0, clipping_norm=1.0, "
    "num_sampled_clients=10)"
)

LOCAL = Mechanism(1.0, 1.0, 1e-5, "client", "client", stated_for="round")
"""Noise at the client on its clipped update."""

OPACUS = Mechanism(
    1.0, 1.0, 1e-5, "client", "client", moves=1.0, unit="record", steps=5,
    record_sampling="poisson", record_rate=0.2,
)  # fmt: skip
"""DP-SGD of Opacus with batches of a fifth of the records, one epoch a round."""

SHAPES = {"layer.weight": (40, 20), "layer.bias": (40,), "head.weight": (10, 40)}

Metrics = Callable[[int, int], Mapping[str, float]]
"""Metrics of a reply, by round and number of the client."""


def no_metrics(number: int, place: int) -> Mapping[str, float]:
    return {}


@dataclass(frozen=True)
class Drawn:
    """How the messages of a run are drawn.

    `noise` scales the noise that is really added; `seed_of` gives the seed of the noise of a
    message, by round and client, which repeats it if it does.
    """

    rounds: int = 3
    clients: int = 10
    examples: Callable[[int], int | None] = lambda place: 100
    noise: float = 1.0
    length: float = 1.0
    seed_of: Callable[[int, int], int] | None = None
    metrics: Metrics = no_metrics
    joins: Callable[[int], int] = lambda place: 0
    quiet: Callable[[int, int], bool] = lambda number, place: False
    seed: int = 0


def evidence(
    mechanism: Mechanism,
    settings: str,
    drawn: Drawn | None = None,
    *,
    algorithm: str = "FedAvg(rate=1.0, mean='examples')",
    recipe: Recipe | None = None,
    run: RunParameters | None = None,
) -> RunEvidence:
    """Return what a recording of a drawn run states; without `drawn`, what a plan does."""
    rounds = 3 if drawn is None else drawn.rounds
    parameters = run or RunParameters(rounds, 1.0, sampling="none")
    stated = StatedMechanism(settings, account_mechanism(mechanism, parameters))
    counts = [] if drawn is None else list(map(drawn.examples, range(drawn.clients)))
    known = [count for count in counts if count is not None]
    return RunEvidence(
        "the run",
        (stated,),
        run=parameters,
        clients=10 if drawn is None else drawn.clients,
        messages=() if drawn is None else draw_messages(mechanism, drawn, recipe),
        recipe=recipe,
        algorithm=algorithm,
        examples=min(known, default=None),
    )


def draw_messages(
    mechanism: Mechanism, drawn: Drawn, recipe: Recipe | None = None
) -> tuple[Message, ...]:
    """Draw updates of one length, with noise where the mechanism says so."""
    signal = torch.Generator().manual_seed(drawn.seed)
    noise = torch.Generator().manual_seed(drawn.seed + 10**6)
    shared = _direction(signal)
    model = {name: torch.zeros(shape) for name, shape in SHAPES.items()}
    found = list[Message]()
    for number in range(drawn.rounds):
        members = [one for one in range(drawn.clients) if drawn.joins(one) <= number]
        readers = frozenset({SERVER, *map(client, members)})
        found.append(Message(number, SERVER, readers, Broadcast(model)))
        updates = list[Update]()
        for place in members:
            delta = _scaled(_sum(shared, _direction(signal), 1.0), drawn.length)
            if mechanism.noised_at == "client" and not drawn.quiet(number, place):
                if drawn.seed_of is not None:
                    noise.manual_seed(drawn.seed_of(number, place))
                size = drawn.noise * _client_noise(mechanism, recipe, drawn.examples(place))
                delta = _sum(delta, _gaussian(noise), size)
            update = Update(delta, drawn.examples(place), drawn.metrics(number, place))
            updates.append(update)
            found.append(Message(number, client(place), frozenset({SERVER}), update))
        model = _sum(model, _mean(updates), 1.0)
        if mechanism.noised_at == "server":
            if drawn.seed_of is not None:
                noise.manual_seed(drawn.seed_of(number, 0))
            size = drawn.noise * mechanism.noise_multiplier * mechanism.clip / drawn.clients
            model = _sum(model, _gaussian(noise), size)
    everybody = frozenset({SERVER, *map(client, range(drawn.clients))})
    found.append(Message(drawn.rounds, SERVER, everybody, Broadcast(model)))
    return tuple(found)


def _client_noise(mechanism: Mechanism, recipe: Recipe | None, examples: int | None) -> float:
    if mechanism.unit == "client":
        return mechanism.noise_multiplier * mechanism.clip
    # DP-SGD with rate 0.1 if no recipe is known.
    rate = 0.1 if recipe is None else recipe.rate
    batch = (mechanism.record_rate or 1) * (examples or 1)
    return rate * mechanism.noise_multiplier * mechanism.clip * sqrt(mechanism.steps) / batch


def _gaussian(generator: torch.Generator) -> dict[str, Tensor]:
    return {name: torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}


def _direction(generator: torch.Generator) -> dict[str, Tensor]:
    return _scaled(_gaussian(generator), 1.0)


def _scaled(weights: Mapping[str, Tensor], length: float) -> dict[str, Tensor]:
    norm = sqrt(sum(float(one.square().sum()) for one in weights.values()))
    return {name: one * (length / norm) for name, one in weights.items()}


def _sum(
    left: Mapping[str, Tensor], right: Mapping[str, Tensor], factor: float
) -> dict[str, Tensor]:
    return {name: left[name] + factor * right[name] for name in left}


def _mean(updates: list[Update]) -> dict[str, Tensor]:
    total = sum(update.examples or 1 for update in updates)
    found = {name: torch.zeros(shape) for name, shape in SHAPES.items()}
    for update in updates:
        found = _sum(found, update.delta, (update.examples or 1) / total)
    return found


def faults(rule: RunRule, run: RunEvidence) -> tuple[Fault, ...]:
    """Return the faults that a rule finds, which must be able to look."""
    found = rule.examine(run)
    assert isinstance(found, tuple), found
    return found
