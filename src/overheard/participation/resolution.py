"""How much of a client's contribution the sums of a run reveal."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

IDENTIFIED = 1e-6
"""Largest distance of a client's unit vector from what the sums determine, for rounding."""

AMPLIFICATION_ROUNDS = 8
"""Rounds after which the amplification is computed: each needs a decomposition."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Resolution:
    """How much of each client's contribution the sums of a run reveal.

    Args:
        by_round: (rounds, clients), the resolution after each round, 0 to 1: the share of the
            variance of a client's contribution that the sums so far explain.
        amplification: by number of rounds, the median over clients of the standard error of
            the least-squares estimate of a client, in units of the noise of one sum; None = the
            sums so far do not determine half of the clients.

    """

    by_round: NDArray[np.float64]
    amplification: dict[int, float | None]

    @property
    def mean(self) -> float:
        """Return the mean resolution of clients after the last round."""
        return float(self.by_round[-1].mean())

    @property
    def largest(self) -> float:
        """Return the resolution of the client that the sums reveal most of."""
        return float(self.by_round[-1].max())


def find_resolution(
    weights: NDArray[np.float64], *, with_amplification: bool = True
) -> Resolution:
    """Return the resolution of clients after each round.

    A client's contribution x has variance 1, and a sum is y_t = sum over i of A_ti x_i + noise
    of variance 1: the noise of a sum is as large as the spread of a client. The share of the
    variance of x_i that the best linear estimate explains is

        1 - ((I + A^T A)^-1)_ii,

    the diagonal of the model resolution matrix of ridge regression (Menke 2012, Geophysical
    Data Analysis, chapter 4). Each round updates the inverse by a matrix of rank one (Sherman
    and Morrison 1950), so T rounds of N clients take about 2 T N^2 operations.

    Args:
        weights: (rounds, clients), the weight of each client in each sum; 0 = not in it, and 1
            is the weight of an ordinary client.
        with_amplification: whether to compute the amplification as well.

    """
    rounds, clients = weights.shape
    remaining = np.eye(clients)
    by_round = np.empty((rounds, clients))
    for number, row in enumerate(weights):
        gain = remaining @ row
        remaining -= np.outer(gain, gain / (1 + row @ gain))
        by_round[number] = 1 - remaining.diagonal()
    after = sorted({round(rounds * part / AMPLIFICATION_ROUNDS) for part in range(1, 9)} - {0})
    chosen = after if with_amplification else ()
    return Resolution(
        by_round.clip(0, 1), {number: _amplification(weights[:number]) for number in chosen}
    )


def _amplification(weights: NDArray[np.float64]) -> float | None:
    """Return the median amplification: the norm of a client's row of the pseudo-inverse.

    A client whose unit vector is not in the row space has none, which counts as infinite.
    """
    if 2 * len(weights) < weights.shape[1]:
        return None  # so few sums determine less than half of the clients
    inverse = np.linalg.pinv(weights)
    is_identified = np.abs((inverse * weights.T).sum(axis=1) - 1) < IDENTIFIED
    each = np.where(is_identified, np.linalg.norm(inverse, axis=1), np.inf)
    median = float(np.median(each))
    return median if np.isfinite(median) else None
