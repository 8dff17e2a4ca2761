"""The sampling of the clients of a round, and of the epochs for which they train."""

from typing import Literal

import torch

from overheard.core.seeds import Seed

Sampling = Literal["fixed", "poisson", "with_replacement"]
"""How clients are sampled: a fixed number of different ones, each with the same probability
and independently, or a fixed number of draws in which a client may occur several times."""


def clients_per_round(clients: int, participation: float) -> int:
    """Return how many clients are sampled per round, with Poisson sampling on average."""
    return max(1, round(participation * clients))


def sampling_rate(clients: int, participation: float, sampling: Sampling = "fixed") -> float:
    """Return an upper bound on the probability that a client was sampled in a round.

    Another client may know more than the sampling. If the number of sampled clients is fixed, a
    client that was not sampled knows that all of them are among the others.

    >>> sampling_rate(5, 0.4), sampling_rate(2, 0.5), sampling_rate(2, 0.5, "poisson")
    (0.5, 1.0, 0.5)
    """
    if sampling == "poisson":
        return participation
    return min(1.0, clients_per_round(clients, participation) / max(1, clients - 1))


def draw_copies(
    clients: int, participation: float, sampling: Sampling, seed: Seed
) -> dict[int, int]:
    """Sample the clients of a round: how often each was drawn, by index and in order.

    With Poisson sampling nobody may be drawn.
    """
    generator, count = seed.generator(), clients_per_round(clients, participation)
    if sampling == "poisson":
        drawn = torch.rand(clients, generator=generator) < participation
        return dict.fromkeys(drawn.nonzero().flatten().tolist(), 1)
    if sampling == "with_replacement":
        copies = torch.randint(clients, (count,), generator=generator).bincount(
            minlength=clients
        )
        return {index: number for index, number in enumerate(copies.tolist()) if number}
    chosen = torch.randperm(clients, generator=generator)[:count].tolist()
    return dict.fromkeys(sorted(chosen), 1)


def draw_epochs(epochs_range: tuple[int, int], seed: Seed) -> int:
    """Draw the number of epochs of a client, evenly from a range with both ends included."""
    low, high = epochs_range
    return int(torch.randint(low, high + 1, (), generator=seed.generator()))


def draw_straggler_epochs(epochs: int, rate: float, seed: Seed) -> int:
    """Draw for how many of its epochs a client trains in a round.

    With probability `rate` it is slow, and trains for 1 to `epochs` - 1 epochs, drawn evenly; a
    single epoch is never cut.
    """
    generator = seed.generator()
    if epochs == 1 or float(torch.rand((), generator=generator)) >= rate:
        return epochs
    return int(torch.randint(1, epochs, (), generator=generator))
