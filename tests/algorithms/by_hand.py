"""Small updates and the references that algorithms are held against, in plain float64."""

from collections.abc import Sequence

import torch

from overheard.core.algorithm.algorithm import Algorithm, ReceivedUpdate, ServerState
from overheard.core.messages import Update, weighted_sum
from overheard.core.parties import client


def received(*deltas: float, sizes: Sequence[int | None] = ()) -> tuple[ReceivedUpdate, ...]:
    """Return updates of one weight each, with these numbers of examples or 1."""
    return tuple(
        ReceivedUpdate(
            client(number),
            Update(
                {"w": torch.tensor([delta], dtype=torch.float64)},
                sizes[number] if sizes else 1,
            ),
        )
        for number, delta in enumerate(deltas)
    )


def start(weight: float = 0.0) -> ServerState:
    """Return the state of a server with one weight and no memory."""
    return ServerState({"w": torch.tensor([weight], dtype=torch.float64)})


def track(algorithm: Algorithm, means: Sequence[float], weight: float = 0.0) -> list[float]:
    """Return the weight after each round in which this is the mean update."""
    state, weights = start(weight), list[float]()
    for number, mean in enumerate(means):
        updates = received(mean)
        delta = weighted_sum([updates[0].update.delta], algorithm.factors(updates))
        state = algorithm.next_state(number, state, delta, updates)
        weights.append(float(state.weights["w"]))
    return weights
