"""What an attacker assumes of the federation that it simulates, and random draws of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float

from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.core.split import Rows, Split
from overheard.simulation.client_sizes import draw_size
from overheard.simulation.federations.resampling_pool import ResamplingPool
from overheard.simulation.virtual_client import draw_counts

CONCENTRATIONS = (np.inf, np.inf, 10.0, 3.2)
"""How alike the label shares of clients are, in turn: a Dirichlet distribution around the
auxiliary examples' shares with this mean alpha per label; infinite = equal to them."""

MIN_SHARE = 1e-9
"""Smallest share of a label, so that none is exactly 0 and shares can be rescaled."""

SHIFT_WEIGHTS = (0.7, 0.9)
"""The weight of the labels that rise in a simulated shift: from 70-30 to 90-10. Errors of
estimates are no larger for weaker shifts."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class FederationDesign:
    """The assumptions behind simulated federations.

    Args:
        clients: number of clients that train in each round.
        observers: how many of them, the first ones, are the attacker's own.
        target_clients: how many of them, the next ones, are behind an update of the target.
        rounds: number of rounds.
        exchange_every: rounds after which every client replaces its examples by a new draw
            from its own fixed label shares.
        sizes: smallest and largest number of examples of a client.
        label_shares: the label shares that clients have on average.
        splits: label splits, all equally likely; () = `CONCENTRATIONS` around `label_shares`.
        recipes: number of recipes, all equally likely; a federation follows one.
        start: the weights of the first round; None = built anew for every federation.
        is_plain: whether the observer reads the target's updates without their corrections.

    """

    clients: int
    observers: int
    target_clients: int
    rounds: int
    exchange_every: int
    sizes: tuple[int, int]
    label_shares: tuple[float, ...]
    splits: tuple[Split, ...] = ()
    recipes: int = 1
    start: Weights | None = None
    is_plain: bool = True

    def __post_init__(self) -> None:
        """Refuse numbers that do not fit together."""
        if min(self.clients, self.target_clients, self.rounds, self.exchange_every) < 1:
            raise ValueError(
                "clients, target_clients, rounds and exchange_every must be 1 or more"
            )
        if self.observers < 0 or self.observers + self.target_clients > self.clients:
            raise ValueError(
                f"{self.observers} observers and {self.target_clients} clients of the target "
                f"do not fit into a federation of {self.clients}"
            )

    @property
    def target(self) -> range:
        """The numbers of the clients behind an update of the target."""
        return range(self.observers, self.observers + self.target_clients)

    @property
    def chunks(self) -> int:
        """How many sets of examples each client holds, one after the other."""
        return -(-self.rounds // self.exchange_every)

    def chunk_of(self, place: int) -> int:
        """Return which of a client's chunks it holds in this round, counted from 0."""
        return place // self.exchange_every


@final
@dataclass(frozen=True, slots=True, eq=False)
class SimulatedFederation:
    """The random draws of one simulated federation.

    Args:
        seed: of its initial weights, batches and defenses.
        recipe: index of the recipe.
        rows: rows of the pool, by chunk and client.
        shares: the label shares from which each client draws, by chunk and client.
        shift_chunk: the first chunk after the shift of the target; None = no shift.
        rising: marks the labels that the shift makes more frequent.

    """

    seed: Seed
    recipe: int
    rows: tuple[tuple[Rows, ...], ...]
    shares: Float[np.ndarray, "chunks clients classes"]
    shift_chunk: int | None
    rising: Bool[np.ndarray, " classes"]


def draw_federation(
    design: FederationDesign,
    pool: ResamplingPool,
    number: int,
    seed: Seed,
    *,
    shifts: bool = False,
) -> SimulatedFederation:
    """Draw the federation of this number; others do not change it.

    Each has a population of its own, of which clients' examples are drawn. With `shifts`, the
    target's labels shift with an exchange: at the middle one or any, in one of its clients or
    all. One label rises, any number up to half of them, or half of them, in turn.

    With `shifts`, the examples of a client differ as far as possible, since models respond to
    label shares less, or more, where they see an example twice. Without, they repeat at random,
    so that federations vary at least as much as real ones.
    """
    own = seed.child("shifted" if shifts else "unshifted", number)
    generator, classes = own.child("draws").numpy(), len(design.label_shares)
    population = pool.draw_population(generator)
    sizes = [
        draw_size(design.sizes, own.child("imagined", "size", k)) for k in range(design.clients)
    ]
    fixed = np.stack(
        [_client_shares(design, number, sizes[k], k, own) for k in range(design.clients)]
    )
    shares = np.repeat(fixed[None], design.chunks, 0)  # (chunks, clients, classes)
    shift_chunk, rising = None, np.zeros(classes, dtype=bool)
    if shifts and design.chunks > 1:
        middle = -(-design.chunks // 2)
        shift_chunk = int(generator.integers(1, design.chunks)) if number % 2 else middle
        whole = (number // 2) % 2 == 1
        shifting = list(design.target) if whole else [int(generator.choice(design.target))]
        half = max(1, classes // 2)
        risen = (1, int(generator.integers(1, half + 1)), half)[number % 3]
        rising[generator.permutation(classes)[:risen]] = True
        weight = generator.uniform(*SHIFT_WEIGHTS)
        shares[shift_chunk:, shifting] *= np.where(rising, weight, 1 - weight)
        shares /= shares.sum(-1, keepdims=True)
    rows = tuple(
        tuple(
            population.draw_chunk(size, client_shares, generator, distinct=shifts)
            for size, client_shares in zip(sizes, chunk, strict=True)
        )
        for chunk in shares
    )
    recipe = int(generator.integers(design.recipes))
    return SimulatedFederation(own, recipe, rows, shares, shift_chunk, rising)


def population_shares(
    design: FederationDesign, federations: Sequence[SimulatedFederation]
) -> Float[np.ndarray, "federations rounds classes"]:
    """Return the label shares from which the target draws, weighted by its clients' sizes."""
    by_chunk = []
    for federation in federations:
        sizes = np.array([[len(rows) for rows in chunk] for chunk in federation.rows])
        target = list(design.target)
        weights = sizes[:, target, None] / sizes[:, target].sum(1)[:, None, None]
        by_chunk.append((federation.shares[:, target] * weights).sum(1))
    return _by_round(design, np.stack(by_chunk))


def held_shares(
    design: FederationDesign,
    federations: Sequence[SimulatedFederation],
    labels: np.ndarray,
) -> Float[np.ndarray, "federations rounds classes"]:
    """Return the label shares of the examples that the target holds; labels of the pool."""
    classes = len(design.label_shares)
    by_chunk = np.array(
        [
            [
                np.bincount(
                    labels[np.concatenate([chunk[k].numpy() for k in design.target])],
                    minlength=classes,
                )
                for chunk in federation.rows
            ]
            for federation in federations
        ],
        dtype=np.float64,
    )
    return _by_round(design, by_chunk / by_chunk.sum(-1, keepdims=True))


def _by_round(design: FederationDesign, by_chunk: np.ndarray) -> np.ndarray:
    return by_chunk[:, [design.chunk_of(place) for place in range(design.rounds)]]


def _client_shares(
    design: FederationDesign, number: int, size: int, client: int, seed: Seed
) -> Float[np.ndarray, " classes"]:
    own, average = seed.child("client", client), np.array(design.label_shares)
    if design.splits:
        counts = draw_counts(client, design.splits, (size, size), len(average), seed)
        shares = np.array(counts, dtype=np.float64)
    else:
        concentration = CONCENTRATIONS[number % len(CONCENTRATIONS)]
        shares = average
        if np.isfinite(concentration):
            alpha = concentration * len(average) * average.clip(min=MIN_SHARE)
            shares = own.numpy().dirichlet(alpha)
    shares = shares.clip(min=MIN_SHARE)
    rescaled: np.ndarray = shares / shares.sum()
    return rescaled
