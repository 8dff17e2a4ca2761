"""Chunks of virtual clients that are trained and probed together."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
import torch

from overheard.core.knowledge import Knowledge
from overheard.core.seeds import Seed
from overheard.core.split import Split
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.faces import Faces
from overheard.simulation.cache_keys import text_key
from overheard.simulation.client_sizes import draw_size_range
from overheard.simulation.virtual_client import VirtualClient, draw_counts

DEFAULT_SPLITS: tuple[Split, ...] = (
    Dirichlet(0.1),
    Dirichlet(0.32),
    Dirichlet(1.0),
    Dirichlet(3.2),
    Dirichlet(10.0),
    Faces(),
)
"""From one or two labels per client to about equal shares; all splits are equally likely.

Alphas are evenly spaced in their logarithm. `Faces` leaves out labels, which larger alphas do
not. Nothing here was fitted to any run."""


CHUNK = 32
"""Virtual clients trained together. The number is fixed, as it affects the last bits of the
results. Larger chunks are not faster (see `learning.memory`)."""

MAX_COHORT_SIZE = 64
"""The most members of a virtual cohort; larger cohorts are simulated by this many."""

MIN_WEIGHT = 1e-3
"""Added to the weight of each client, so that clients without the label can be chosen too."""

FIRST_ON_QUARTER = 1_000_000
"""The number of the first client, or chunk of cohorts, that trains on a quarter. So these draws
are others than those of clients with a whole half, however many there are."""

COUNTS_KEY = "counts"
"""The name of the cached tensor with the label counts of all clients."""


@final
@dataclass(frozen=True, slots=True)
class Chunk:
    """Virtual clients that are trained together, and the cohorts that they form.

    Args:
        clients: the virtual clients.
        cohorts: the positions in `clients` of each cohort's members; None = each client is
            probed alone.
        after_server: whether a cohort is probed after the server's own defenses, as seen by
            observers who read only broadcasts.

    """

    clients: tuple[VirtualClient, ...]
    cohorts: tuple[tuple[int, ...], ...] | None = None
    after_server: bool = False

    def clients_per_reading(self) -> tuple[tuple[VirtualClient, ...], ...]:
        """Return the clients behind each reading: one client, or the members of a cohort."""
        if self.cohorts is None:
            return tuple((client,) for client in self.clients)
        return tuple(
            tuple(self.clients[position] for position in positions)
            for positions in self.cohorts
        )


def chunk_width(cohort_size: int | None) -> int:
    """Return how many virtual clients, or virtual cohorts, a whole chunk has.

    Args:
        cohort_size: the number of clients of a cohort; None = no cohorts.

    """
    return CHUNK if cohort_size is None else max(CHUNK, 2 * min(cohort_size, MAX_COHORT_SIZE))


def draw_chunks(
    knowledge: Knowledge,
    sizes: tuple[int, int],
    cohort_size: int | None,
    seed: Seed,
    *,
    after_server: bool = False,
    with_quarters: bool = False,
) -> tuple[Chunk, ...]:
    """Draw all virtual clients or virtual cohorts, chunk by chunk.

    The draws of a client depend only on the seed and its number, so requesting more clients
    keeps the first ones. With quarters, so it is from two whole chunks on; with cohorts, from
    two, and with both, from four. Virtual clients train on the two halves of the auxiliary
    examples in turn. With cohorts, whole chunks do. All members of a cohort train on one part,
    follow one recipe and have sizes of one scale, as the members of a federation do.

    Args:
        knowledge: what is known of clients, with the number of virtual clients.
        sizes: the smallest and the largest client.
        cohort_size: the number of clients of a cohort, at most `MAX_COHORT_SIZE`; None = no
            cohorts.
        seed: the seed of the simulation.
        after_server: whether cohorts are probed after the server's own defenses.
        with_quarters: whether every other client, or pair of chunks of cohorts, trains on a
            quarter of the auxiliary examples, in either half.

    Raises:
        NeedsError: if a split of the prior cannot be drawn from.

    """
    count = knowledge.compute.virtual_clients
    if cohort_size is None:
        # At least two chunks, so that one of them can train on quarters.
        width = min(CHUNK, -(-count // 2)) if with_quarters else CHUNK
        numbers = _client_numbers(count, width, with_quarters)
        label_counts = _load_or_draw_counts(knowledge, numbers, [sizes] * count, seed)
        clients = [
            _draw_client(n, n, counts, knowledge, seed.child("client", n))
            for n, counts in zip(numbers, label_counts, strict=True)
        ]
        return tuple(
            Chunk(tuple(clients[begin : begin + width])) for begin in range(0, count, width)
        )
    width, cohort_size = chunk_width(cohort_size), min(cohort_size, MAX_COHORT_SIZE)
    cohort_counts = _cohort_chunks(count, width, with_quarters)
    turns = [_turn_of_chunk(chunk, with_quarters) for chunk in range(len(cohort_counts))]
    seeds = [seed.child("chunk", turn) for turn in turns]
    numbers = [turn * width + place for turn in turns for place in range(width)]
    scales = [
        scale for one in seeds for scale in [draw_size_range(sizes, one.child("sizes"))] * width
    ]
    label_counts = _load_or_draw_counts(knowledge, numbers, scales, seed)
    chunks = []
    for chunk, (turn, chunk_seed, cohort_count) in enumerate(
        zip(turns, seeds, cohort_counts, strict=True)
    ):
        places = range(chunk * width, chunk * width + max(2 * cohort_size, cohort_count))
        clients = [
            _draw_client(numbers[n], turn, label_counts[n], knowledge, chunk_seed)
            for n in places
        ]
        cohorts = _draw_cohorts(clients, cohort_count, cohort_size, chunk_seed)
        chunks.append(Chunk(tuple(clients), cohorts, after_server))
    return tuple(chunks)


def _client_numbers(count: int, width: int, with_quarters: bool) -> list[int]:
    """Return the numbers of clients, of which every other chunk may train on quarters."""
    if not with_quarters:
        return list(range(count))
    return [
        (place // width % 2) * FIRST_ON_QUARTER + place // (2 * width) * width + place % width
        for place in range(count)
    ]


def _cohort_chunks(count: int, width: int, with_quarters: bool) -> list[int]:
    """Return the number of cohorts of each chunk.

    There is a chunk for each half, and with quarters another one for each, so that there are
    cohorts of both halves. If they cannot all be whole, they share the cohorts evenly.
    """
    fewest = min(count, 4 if with_quarters else 2)
    if count < fewest * width:
        begins = [-(-count * chunk // fewest) for chunk in range(fewest)]
    else:
        begins = list(range(0, count, width))
    return [end - begin for begin, end in pairwise([*begins, count])]


def _turn_of_chunk(chunk: int, with_quarters: bool) -> int:
    """Return the number of a chunk of cohorts among those that train on parts of one kind."""
    if not with_quarters:
        return chunk
    turn = chunk // 4 * 2 + chunk % 2
    return turn if chunk % 4 < 2 else FIRST_ON_QUARTER + turn


def _draw_client(
    number: int, turn: int, counts: tuple[int, ...], knowledge: Knowledge, seed: Seed
) -> VirtualClient:
    """Draw a client; the turn decides on which part of the auxiliary examples it trains."""
    recipe = int(seed.child("recipe").numpy().integers(len(knowledge.candidate_recipes())))
    quarter = turn // 2 % 2 if turn >= FIRST_ON_QUARTER else None
    return VirtualClient(
        number, turn % 2, recipe, counts, knowledge.prior.with_replacement, quarter
    )


def _load_or_draw_counts(
    knowledge: Knowledge,
    numbers: Sequence[int],
    sizes: Sequence[tuple[int, int]],
    seed: Seed,
) -> list[tuple[int, ...]]:
    """Load the label counts of clients from the cache, or draw and save them.

    Drawing them for 1,200 clients of 600 examples takes half a second, for every attack.
    """
    cache, splits = knowledge.compute.cache, knowledge.prior.splits or DEFAULT_SPLITS
    key = text_key(repr((splits, numbers, sizes, knowledge.classes, seed)))
    cached = cache.load(key)
    if cached is not None:
        return [tuple(counts) for counts in cached[COUNTS_KEY].tolist()]
    label_counts = [
        draw_counts(number, splits, size_range, knowledge.classes, seed)
        for number, size_range in zip(numbers, sizes, strict=True)
    ]
    cache.save(key, {COUNTS_KEY: torch.tensor(label_counts)})
    return label_counts


def _draw_cohorts(
    clients: Sequence[VirtualClient], cohort_count: int, members: int, seed: Seed
) -> tuple[tuple[int, ...], ...]:
    """Draw every other cohort uniformly, and the others with a preference for some label.

    Cohorts of random members all have nearly the same label shares, so nothing could be learned
    from them alone.
    """
    counts = np.array([client.counts for client in clients], dtype=np.float64)
    shares = counts / counts.sum(1, keepdims=True)  # (clients, classes)
    cohorts = []
    for number in range(cohort_count):
        generator = seed.child("cohort", number).numpy()
        weights = np.ones(len(clients))
        if number % 2:
            # Fewer clients than members may have the label, so the others need a weight too.
            weights = shares[:, generator.integers(shares.shape[1])] + MIN_WEIGHT
        chosen = generator.choice(
            len(clients), members, replace=False, p=weights / weights.sum()
        )
        cohorts.append(tuple(sorted(chosen.tolist())))
    return tuple(cohorts)
