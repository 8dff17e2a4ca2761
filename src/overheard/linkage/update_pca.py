"""Principal component analysis of updates, centred on the mean of their round."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

MAX_DIRECTIONS = 1000
"""More directions gained nothing on blogs and WISDM; a fit with this many takes seconds."""

MAX_UPDATES = 2500
"""Most updates in a fit, evenly spaced if there are more: its time is cubic in their number."""

BLOCK = 512
"""Updates held in memory in float64 at once."""

MIN_VARIANCE = 1e-9
"""Share of the largest variance below which a direction counts as rounding error."""

ROUNDING = 1e-12
"""Largest difference that counts as rounding error in updates of length 1 (float64)."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class UpdatePca:
    """Principal directions of updates of length 1, centred on the mean of their round.

    The mean of a round is common to all clients; the rest is specific to each client.

    Args:
        directions: orthonormal columns.

    """

    directions: Float[Tensor, "dims directions"]

    def project(
        self,
        vectors: Float[Tensor, "updates dims"],
        rounds: Int[Tensor, " updates"],
        means: "RoundMeans",
    ) -> Float[Tensor, "updates directions"]:
        """Project updates, each centred on the mean of its round or of the nearest round."""
        blocks = _blocks(vectors, rounds)
        return torch.cat(
            [
                means.subtract_from(scaled, block_rounds) @ self.directions
                for scaled, block_rounds in blocks
            ]
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class RoundMeans:
    """The mean update of each round, with every update scaled to length 1.

    Args:
        rounds: the round numbers, in order.
        means: the mean of each round.

    """

    rounds: Int[Tensor, " rounds"]
    means: Float[Tensor, "rounds dims"]

    def subtract_from(
        self, scaled: Float[Tensor, "updates dims"], rounds: Int[Tensor, " updates"]
    ) -> Float[Tensor, "updates dims"]:
        """Subtract the mean of each update's round, or of the nearest round with a mean."""
        nearest = (rounds[:, None] - self.rounds[None]).abs().argmin(1)  # (updates)
        return scaled - self.means[nearest]


def fit_round_means(
    vectors: Float[Tensor, "updates dims"], rounds: Int[Tensor, " updates"]
) -> RoundMeans:
    """Compute the mean update of each round."""
    distinct, place = torch.unique(rounds, return_inverse=True)
    sums = torch.zeros(len(distinct), vectors.shape[1], dtype=torch.float64)
    for scaled, block_places in _blocks(vectors, place):
        sums.index_add_(0, block_places, scaled)
    return RoundMeans(distinct, sums / place.bincount(minlength=len(distinct))[:, None])


def fit_update_pca(
    vectors: Float[Tensor, "updates dims"], rounds: Int[Tensor, " updates"]
) -> UpdatePca:
    """Fit the leading principal directions of updates, `MAX_DIRECTIONS` at most.

    The eigenvectors are those of the Gram matrix or of the covariance, whichever is smaller. If
    the updates of a round do not differ, the only direction is 0, so all projections are equal.
    """
    if len(vectors) > MAX_UPDATES:
        chosen = torch.linspace(0, len(vectors) - 1, MAX_UPDATES).round().long()
        vectors, rounds = vectors[chosen], rounds[chosen]
    means = fit_round_means(vectors, rounds)
    centred = torch.cat(
        [
            means.subtract_from(scaled, block_rounds)
            for scaled, block_rounds in _blocks(vectors, rounds)
        ]
    )
    updates, dims = centred.shape
    if not bool(centred.abs().max() > ROUNDING):
        return UpdatePca(centred.new_zeros(dims, 1))
    if updates < dims:
        variances, eigenvectors = torch.linalg.eigh(centred @ centred.T)
        selected = _select_directions(variances)
        return UpdatePca((centred.T @ eigenvectors[:, selected]) / variances[selected].sqrt())
    variances, eigenvectors = torch.linalg.eigh(centred.T @ centred)
    return UpdatePca(eigenvectors[:, _select_directions(variances)])


def _blocks(
    vectors: Float[Tensor, "updates dims"], values: Int[Tensor, " updates"]
) -> Iterator[tuple[Float[Tensor, "_updates dims"], Int[Tensor, " _updates"]]]:
    """Yield blocks of updates scaled to length 1, each with its rows of `values`."""
    parts = zip(torch.split(vectors, BLOCK), torch.split(values, BLOCK), strict=True)
    return ((normalize(block.double()), block_values) for block, block_values in parts)


def _select_directions(variances: Float[Tensor, " directions"]) -> Int[Tensor, " kept"]:
    """Select the directions with enough variance, largest first."""
    largest = variances.argsort(descending=True)[:MAX_DIRECTIONS]
    return largest[variances[largest] > MIN_VARIANCE * variances.max()]
