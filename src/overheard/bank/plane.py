"""The few directions in which updates of one round differ from each other."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

MOST_DIRECTIONS = 1000
"""Beyond it nothing was gained on blogs and WISDM, and a fit takes seconds."""

LEAST_SPREAD = 1e-9
"""Share of the largest variance below which a direction is rounding."""


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
        return means.less(normalize(vectors.double()), rounds) @ self.directions


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
    sums.index_add_(0, place, normalize(vectors.double()))
    return RoundMeans(there, sums / place.bincount(minlength=len(there))[:, None])


def plane_of(vectors: Float[Tensor, "updates dims"], rounds: Int[Tensor, " updates"]) -> Plane:
    """The leading directions of these updates, `MOST_DIRECTIONS` at most.

    From the inner products of updates or of their numbers, whichever are fewer.
    """
    scaled = normalize(vectors.double())
    apart = round_means(vectors, rounds).less(scaled, rounds)
    updates, dims = apart.shape
    if updates < dims:
        spread, sides = torch.linalg.eigh(apart @ apart.T)
        kept = _kept(spread)
        return Plane((apart.T @ sides[:, kept]) / spread[kept].sqrt())
    spread, sides = torch.linalg.eigh(apart.T @ apart)
    return Plane(sides[:, _kept(spread)])


def _kept(spread: Float[Tensor, " directions"]) -> Int[Tensor, " kept"]:
    """The largest first; one at least, so that there is a plane at all."""
    largest = spread.argsort(descending=True)[:MOST_DIRECTIONS]
    enough = spread[largest] > LEAST_SPREAD * spread.max().clamp(min=1e-300)
    return largest[enough] if bool(enough.any()) else largest[:1]
