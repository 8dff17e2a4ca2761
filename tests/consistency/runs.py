"""Small runs whose clients send random replies, and what is stored of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from overheard.algorithms.fed_avg import FedAvg
from overheard.consistency.check import RecordingCheck
from overheard.consistency.proof import RecordingProof
from overheard.consistency.statement import StatedStep
from overheard.core.algorithm.algorithm import Algorithm, ReceivedUpdate, ServerState
from overheard.core.messages import Broadcast, Message, MissingReply, Update, weighted_sum
from overheard.core.parties import SERVER, Party, client

Model = Mapping[str, Tensor]

SHAPES = {"layer.weight": (20, 10), "layer.bias": (20,), "head.weight": (3, 20)}

EXAMPLES = (10, 25, 40, 70)


@dataclass(frozen=True)
class TrueRun:
    """The global models of a run, the weights of each client, and what the server made of them.

    `models` has one entry more than `weights`: the model after the last round.
    """

    models: Sequence[Model]
    weights: Sequence[Mapping[Party, Model]]
    examples: Mapping[Party, int]


Aggregate = Callable[[Sequence[Update]], Model]


@dataclass(frozen=True)
class Setting:
    """How a run went."""

    algorithm: Algorithm = field(default_factory=FedAvg)
    rounds: int = 5
    clients: int = 4
    aggregate: Aggregate | None = None
    absent: Callable[[int, Party], bool] = lambda number, party: False
    begins: Callable[[int, Party], int] = lambda number, party: number
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: SHAPES)


def simulate(setting: Setting | None = None) -> TrueRun:
    """Draw a run: each client moves by a direction of its own and one that all share."""
    chosen = setting or Setting()
    generator = torch.Generator().manual_seed(0)

    def draw(scale: float) -> dict[str, Tensor]:
        return {
            name: scale * torch.randn(shape, generator=generator)
            for name, shape in chosen.shapes.items()
        }

    parties = [client(number) for number in range(chosen.clients)]
    examples = dict(zip(parties, EXAMPLES * chosen.clients, strict=False))
    models, sent, memory = [draw(1.0)], list[Mapping[Party, Model]](), {}
    for number in range(chosen.rounds):
        shared, local = draw(0.1), dict[Party, Model]()
        updates = list[Update]()
        for party in parties:
            begun = models[chosen.begins(number, party)]
            step = draw(0.1)
            if chosen.absent(number, party):
                continue
            delta = {name: shared[name] + step[name] for name in shared}
            local[party] = {name: begun[name] + delta[name] for name in begun}
            updates.append(Update(delta, examples[party]))
        sent.append(local)
        if not local:
            models.append(models[-1])
            continue
        received = [ReceivedUpdate(one, two) for one, two in zip(local, updates, strict=True)]
        if chosen.aggregate is not None:
            mean = chosen.aggregate(updates)
        else:
            factors = chosen.algorithm.factors(received)
            mean = weighted_sum([one.delta for one in updates], factors)
        state = ServerState(models[-1], memory)
        after = chosen.algorithm.next_state(number, state, mean, received)
        memory = dict(after.memory)
        models.append(after.weights)
    return TrueRun(models, sent, examples)


Store = Callable[[TrueRun, int, Model, Model], Model]
"""What is stored of a client's weights, given the run, the round and the stored broadcast."""


def minus(left: Model, right: Model) -> dict[str, Tensor]:
    return {name: left[name] - right[name] for name in left}


def as_weights(run: TrueRun, number: int, local: Model, start: Model) -> Model:
    return minus(local, start)


def as_differences(run: TrueRun, number: int, local: Model, start: Model) -> Model:
    """What differences become that were read as weights."""
    return minus(minus(local, run.models[number]), start)


def model_after(run: TrueRun, number: int) -> Model:
    return run.models[min(number + 1, len(run.models) - 1)]


def stacked(updates: Sequence[Update], name: str) -> Tensor:
    return torch.stack([one.delta[name] for one in updates])


class Noise:
    """Adds Gaussian noise to the plain mean."""

    def __init__(self, seed: int, deviation: float) -> None:
        self.deviation = deviation
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, updates: Sequence[Update]) -> Model:
        return {
            name: stacked(updates, name).mean(0)
            + self.deviation * torch.randn(one.shape, generator=self.generator)
            for name, one in updates[0].delta.items()
        }


def record(
    run: TrueRun,
    store: Store = as_weights,
    *,
    model: Callable[[TrueRun, int], Model] = lambda run, number: run.models[number],
    is_hidden: bool = False,
    is_closed: bool = True,
    only: Party | None = None,
) -> list[list[Message]]:
    """Return the messages of a recording of the run, by round."""
    rounds = list[list[Message]]()
    for number in range(len(run.models) - (not is_closed)):
        start = model(run, number)
        local = run.weights[number] if number < len(run.weights) else {}
        readers = frozenset({only} if only else local)
        messages = [Message(number, SERVER, readers, Broadcast(start))]
        for party, weights in local.items():
            if only in {None, party}:
                examples = None if is_hidden else run.examples[party]
                body = Update(store(run, number, weights, start), examples)
                messages.append(Message(number, party, frozenset({SERVER}), body))
        missing = [one for one in run.examples if one not in local and local and not only]
        messages += [
            Message(number, one, frozenset({SERVER}), MissingReply("late")) for one in missing
        ]
        rounds.append(messages)
    return rounds


def check(
    rounds: Sequence[Sequence[Message]], statement: StatedStep | None = None
) -> RecordingProof:
    found = RecordingCheck(statement or StatedStep())
    for messages in rounds:
        found.add(messages)
    return found.result()
