"""So many virtual clients as are trained and read at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch

from overheard.core.knowledge import Knowledge
from overheard.core.seeds import Seed
from overheard.simulation.keys import text_key
from overheard.simulation.mixture import MIXTURE
from overheard.simulation.sizes import one_scale
from overheard.simulation.virtual_client import VirtualClient, draw_counts

CHUNK = 32
"""Virtual clients trained at once. A fixed number, as how many train at once moves the last
bits of what they learn; and more train no faster (see `learning.memory`)."""

MOST_MEMBERS = 64
"""Of a virtual cohort; a larger one is played by so many."""

LEAST_CHANCE = 1e-3
"""Of a client with none of the label that a cohort leans towards, beside the label's share."""

COUNTS = "counts"
"""The name of the one tensor that the shelf keeps for all clients."""


@final
@dataclass(frozen=True, slots=True)
class Chunk:
    """Virtual clients that are trained together, and the cohorts that they form.

    Args:
        clients: who is trained.
        cohorts: the places in `clients` of each cohort's members; None = each is read alone.
        after_server: whether a cohort is read from what the server sends out, whose own
            defenses have acted on it then: as one who reads broadcasts alone does.

    """

    clients: tuple[VirtualClient, ...]
    cohorts: tuple[tuple[int, ...], ...] | None = None
    after_server: bool = False

    def makers(self) -> tuple[tuple[VirtualClient, ...], ...]:
        """Those from whom each reading comes: a client alone, or a cohort's members."""
        if self.cohorts is None:
            return tuple((client,) for client in self.clients)
        return tuple(tuple(self.clients[place] for place in own) for own in self.cohorts)


def chunks_of(
    knowledge: Knowledge,
    sizes: tuple[int, int],
    members: int | None,
    seed: Seed,
    *,
    after_server: bool = False,
) -> tuple[Chunk, ...]:
    """Draw all virtual clients, or cohorts of so many members, chunk by chunk.

    A client's draws hang on the seed and its number alone, so more of them are the same ones
    and others. Virtual clients learn from the halves in turn. Of cohorts, whole chunks do, so
    that all members of a cohort learn from one half; and they all follow one recipe, and are
    of one scale, as the members of a federation are.

    Args:
        knowledge: what is known of clients, and how many are wanted.
        sizes: the smallest and the largest client.
        members: of a cohort, of which `MOST_MEMBERS` count; None = no cohorts.
        seed: of the bank.
        after_server: whether cohorts are read from what the server sends out.

    Raises:
        PlanError: if a split of the prior cannot be drawn from.

    """
    wanted = knowledge.means.virtual_clients
    if members is None:
        makeups = _counts(knowledge, [sizes] * wanted, seed)
        clients = [
            _client(n, n % 2, makeups[n], knowledge, seed.child("client", n))
            for n in range(wanted)
        ]
        return tuple(
            Chunk(tuple(clients[begin : begin + CHUNK])) for begin in range(0, wanted, CHUNK)
        )
    members = min(members, MOST_MEMBERS)
    width = max(CHUNK, 2 * members)
    # Two chunks at least, so that there are cohorts of either half.
    step = min(width, -(-wanted // 2))
    scales = [
        scale
        for chunk in range(-(-wanted // step))
        for scale in [one_scale(sizes, seed.child("chunk", chunk, "sizes"))] * width
    ]
    makeups = _counts(knowledge, scales, seed)
    chunks = []
    for chunk, begin in enumerate(range(0, wanted, step)):
        formed, own = min(step, wanted - begin), seed.child("chunk", chunk)
        numbers = range(chunk * width, chunk * width + max(2 * members, formed))
        clients = [_client(n, chunk % 2, makeups[n], knowledge, own) for n in numbers]
        cohorts = _cohorts(clients, formed, members, own)
        chunks.append(Chunk(tuple(clients), cohorts, after_server))
    return tuple(chunks)


def _client(
    number: int, half: int, counts: tuple[int, ...], knowledge: Knowledge, drawer: Seed
) -> VirtualClient:
    recipe = int(drawer.child("recipe").numpy().integers(len(knowledge.recipes())))
    return VirtualClient(number, half, recipe, counts, knowledge.prior.resampled)


def _counts(
    knowledge: Knowledge, sizes: Sequence[tuple[int, int]], seed: Seed
) -> list[tuple[int, ...]]:
    """What each client holds, from the shelf where it was drawn before.

    To deal to 1,200 clients of 600 examples takes half a second, which every attack would wait.
    """
    shelf, splits = knowledge.means.shelf, knowledge.prior.splits or MIXTURE
    key = text_key(repr((splits, sizes, knowledge.classes, seed)))
    kept = shelf.load(key)
    if kept is not None:
        return [tuple(counts) for counts in kept[COUNTS].tolist()]
    drawn = [
        draw_counts(number, splits, own, knowledge.classes, seed)
        for number, own in enumerate(sizes)
    ]
    shelf.save(key, {COUNTS: torch.tensor(drawn)})
    return drawn


def _cohorts(
    clients: Sequence[VirtualClient], formed: int, members: int, seed: Seed
) -> tuple[tuple[int, ...], ...]:
    """Every other cohort at random, the others with a leaning towards some label.

    Means of random members are all alike: nothing could be learned from them.
    """
    counts = np.array([client.counts for client in clients], dtype=np.float64)
    shares = counts / counts.sum(1, keepdims=True)  # (clients, classes)
    cohorts = []
    for number in range(formed):
        generator = seed.child("cohort", number).numpy()
        chances = np.ones(len(clients))
        if number % 2:
            # A little for those who have none of it: there may be fewer others than members.
            chances = shares[:, generator.integers(shares.shape[1])] + LEAST_CHANCE
        chosen = generator.choice(
            len(clients), members, replace=False, p=chances / chances.sum()
        )
        cohorts.append(tuple(sorted(chosen.tolist())))
    return tuple(cohorts)
