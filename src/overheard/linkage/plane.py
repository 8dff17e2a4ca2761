"""The few directions in which updates of one round differ from each other."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

MOST_DIRECTIONS = 1000
"""Beyond it nothing was gained on blogs and WISDM, and a fit takes seconds."""

MOST_UPDATES = 2500
"""From which directions are found, evenly chosen of more, as the time grows as their cube."""

BLOCK = 512
"""Updates that stand in memory in float64 at once."""

LEAST_SPREAD = 1e-9
"""Share of the largest variance below which a direction is rounding."""

ROUNDING = 1e-12
"""The most by which updates of length 1 differ that do not: float64 has 16 digits."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """Principal directions of updates scaled to length 1, less the mean of their round.

    The mean of a round is what all clients were taught in it; what is left is their own.

    Args:
        directions: orthonormal, as columns.

    """

    directions: Float[Tensor, "dims directions"]

    def of(
        self,
        vectors: Float[Tensor, "updates dims"],
        rounds: Int[Tensor, " updates"],
        means: "RoundMeans",
    ) -> Float[Tensor, "updates directions"]:
        """Where updates lie, each less the mean of its round or of the nearest."""
        blocks = _blocks(vectors, rounds)
        return torch.cat([means.less(scaled, own) @ self.directions for scaled, own in blocks])


@final
@dataclass(frozen=True, slots=True, eq=False)
class RoundMeans:
    """The mean update of each round, every update scaled to length 1.

    Args:
        rounds: in order.
        means: of each.

    """

    rounds: Int[Tensor, " rounds"]
    means: Float[Tensor, "rounds dims"]

    def less(
        self, scaled: Float[Tensor, "updates dims"], rounds: Int[Tensor, " updates"]
    ) -> Float[Tensor, "updates dims"]:
        """Take from each update the mean of its round; of the nearest where there is none."""
        nearest = (rounds[:, None] - self.rounds[None]).abs().argmin(1)  # (updates)
        return scaled - self.means[nearest]


def round_means(
    vectors: Float[Tensor, "updates dims"], rounds: Int[Tensor, " updates"]
) -> RoundMeans:
    """The mean of each round that these updates are of."""
    there, place = torch.unique(rounds, return_inverse=True)
    sums = torch.zeros(len(there), vectors.shape[1], dtype=torch.float64)
    for scaled, own in _blocks(vectors, place):
        sums.index_add_(0, own, scaled)
    return RoundMeans(there, sums / place.bincount(minlength=len(there))[:, None])


def plane_of(vectors: Float[Tensor, "updates dims"], rounds: Int[Tensor, " updates"]) -> Plane:
    """The leading directions of these updates, `MOST_DIRECTIONS` at most.

    From the inner products of updates or of their numbers, whichever are fewer. Where updates
    of a round do not differ there is one direction, and it is 0, so that all lie in one place.
    """
    if len(vectors) > MOST_UPDATES:
        chosen = torch.linspace(0, len(vectors) - 1, MOST_UPDATES).round().long()
        vectors, rounds = vectors[chosen], rounds[chosen]
    means = round_means(vectors, rounds)
    apart = torch.cat([means.less(scaled, own) for scaled, own in _blocks(vectors, rounds)])
    updates, dims = apart.shape
    if not bool(apart.abs().max() > ROUNDING):
        return Plane(apart.new_zeros(dims, 1))
    if updates < dims:
        spread, sides = torch.linalg.eigh(apart @ apart.T)
        kept = _kept(spread)
        return Plane((apart.T @ sides[:, kept]) / spread[kept].sqrt())
    spread, sides = torch.linalg.eigh(apart.T @ apart)
    return Plane(sides[:, _kept(spread)])


def _blocks(
    vectors: Float[Tensor, "updates dims"], beside: Int[Tensor, " updates"]
) -> Iterator[tuple[Float[Tensor, "_updates dims"], Int[Tensor, " _updates"]]]:
    """Some updates at a time, scaled to length 1, each with what stands beside it."""
    parts = zip(torch.split(vectors, BLOCK), torch.split(beside, BLOCK), strict=True)
    return ((normalize(block.double()), own) for block, own in parts)


def _kept(spread: Float[Tensor, " directions"]) -> Int[Tensor, " kept"]:
    """The largest first."""
    largest = spread.argsort(descending=True)[:MOST_DIRECTIONS]
    return largest[spread[largest] > LEAST_SPREAD * spread.max()]
