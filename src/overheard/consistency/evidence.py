"""What is kept of a round: products of its vectors, in two halves of the sampled numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from overheard.core.parties import Party

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]

Vector = NDArray[np.float64]

Sum = Mapping[str, float]
"""A sum of named vectors of a round, with their factors."""

ROUNDING = 1.0
"""Most relative error of a broadcast, in distances of neighbouring numbers (RMS: 0.3)."""

CANCELLING = 0.01
"""Largest ratio of the square of a sum and of the squares of its terms that cancel out."""

CHANGES = ("c0", "c1", "c2", "c3")
"""Names of the changes of the model in the round, in the round before, and so on."""


@final
@dataclass(frozen=True, slots=True)
class ClientReplies:
    """A smaller sample of the single replies of a round.

    Args:
        senders: who sent them.
        shares: the factors of the replies in the mean by examples.
        deltas: the replies as they are stored.
        broadcast: the broadcast.
        changes: the changes of the model, by their names in `CHANGES`.

    """

    senders: tuple[Party, ...]
    shares: tuple[float, ...]
    deltas: Float[Tensor, "clients numbers"]
    broadcast: Float[Tensor, " numbers"]
    changes: Mapping[str, Float[Tensor, " numbers"]]


@final
@dataclass(frozen=True, slots=True)
class Alignment:
    """How far each reply of a round contains a vector.

    Args:
        senders: the senders, from the reply that contains minus the vector most.
        shares: their factors in the mean.
        slopes: the factor of the vector in each reply, by least squares.

    """

    senders: tuple[Party, ...]
    shares: tuple[float, ...]
    slopes: tuple[float, ...]


@final
@dataclass(frozen=True, slots=True)
class StepEvidence:
    """The products of the vectors of one round that has replies and a next broadcast.

    The vectors are the changes of the model ("c0", ...), the broadcast ("b"), the mean of the
    replies as they are stored ("examples", "equal", "stated": by its weights), this mean plus
    and minus the broadcast ("examples+b", "examples-b"), the mean of the round before
    ("examples'"), and the change that the stated algorithm predicts ("predicted").

    Args:
        round: number of the round.
        replies: number of replies.
        places: the place of each vector in the matrices; several names may share one.
        fit: the products on the half of the numbers on which factors are fitted.
        test: the products on the other half.
        fit_count: how many numbers are in the half on which factors are fitted.
        count: how many numbers are in the half for tests.
        rounding: the square of the error that rounded broadcasts allow, on that half.
        alignments: by the name of a vector, how far single replies contain it.
        cancelling: the means whose replies cancel each other out, though none is zero.

    """

    round: int
    replies: int
    places: Mapping[str, int]
    fit: Matrix
    test: Matrix
    fit_count: int
    count: int
    rounding: float
    alignments: Mapping[str, Alignment]
    cancelling: frozenset[str] = frozenset()

    def has(self, total: Sum) -> bool:
        """Return whether all vectors of a sum are known."""
        return all(name in self.places for name in total)

    def product(self, half: Matrix, left: Sum, right: Sum) -> float:
        """Return the product of two sums on one half of the numbers."""
        return float(self._factors(left) @ half @ self._factors(right))

    def square(self, half: Matrix, total: Sum) -> float:
        """Return the square of a sum on one half; 0 or more."""
        return max(0.0, self.product(half, total, total))

    def _factors(self, total: Sum) -> Vector:
        factors = np.zeros(len(self.fit))
        for name, factor in total.items():
            factors[self.places[name]] += factor
        return factors


def multiply(vectors: Mapping[str, Tensor]) -> tuple[dict[str, int], Matrix, Matrix]:
    """Return the place of each vector, and the products on both halves of the numbers.

    The halves are the numbers at even and at odd places, so that both have all tensors.
    """
    places, unique = dict[str, int](), list[Tensor]()
    for name, vector in vectors.items():
        same = next((i for i, one in enumerate(unique) if one is vector), len(unique))
        if same == len(unique):
            unique.append(vector)
        places[name] = same
    halves = (torch.stack([one[first::2] for one in unique]) for first in (0, 1))
    fit, test = ((half @ half.T).numpy() for half in halves)
    return places, fit, test


def align(replies: ClientReplies) -> dict[str, Alignment]:
    """Return how far each reply contains the broadcast and its last changes.

    "b" is the broadcast, "base1" its change since the round before, "base2" that since two
    rounds before, and so on. A vector that is zero or unknown is left out.
    """
    vectors = {"b": replies.broadcast}
    total = torch.zeros_like(replies.broadcast)
    for back, name in enumerate(CHANGES[1:], start=1):
        # The broadcasts of runs that are younger than that are all there are.
        total = total + replies.changes.get(name, 0.0)
        vectors[f"base{back}"] = total
    found = dict[str, Alignment]()
    for name, vector in vectors.items():
        square = float(vector.square().sum())
        if not square:
            continue
        slopes = ((replies.deltas.double() @ vector) / square).tolist()
        order = sorted(range(len(slopes)), key=slopes.__getitem__)
        found[name] = Alignment(
            tuple(replies.senders[i] for i in order),
            tuple(replies.shares[i] for i in order),
            tuple(slopes[i] for i in order),
        )
    return found


def find_cancelling(replies: ClientReplies) -> frozenset[str]:
    """Return the means whose replies cancel each other out: deviations from a mean do.

    They are named as in `StepEvidence`. Replies that have nothing to do with each other have a
    mean with a square of about the sum of the squares of its terms.
    """
    found, count = set[str](), len(replies.shares)
    for mean, shares in (("examples", replies.shares), ("equal", (1 / count,) * count)):
        factors = torch.tensor(shares, dtype=torch.float64)[:, None]
        for part, start in (("", 0.0), ("-b", replies.broadcast)):
            terms = factors * (replies.deltas.double() - start)
            if float(terms.sum(0).square().sum()) < CANCELLING * float(terms.square().sum()):
                found.add(f"{mean}{part}")
    return frozenset(found)


def add_sums(*sums: tuple[Sum, float]) -> dict[str, float]:
    """Return a sum of sums, each times its factor; a vector with a factor of 0 is not in it."""
    total = dict[str, float]()
    for one, factor in sums:
        for name, part in one.items():
            total[name] = total.get(name, 0.0) + factor * part
    return {name: factor for name, factor in total.items() if factor}


def least_squares(matrix: Matrix, right: Vector) -> Vector:
    """Return the solution of normal equations; zeros if numbers are too large or too small."""
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        return np.zeros(len(right))
    return np.asarray(np.linalg.lstsq(matrix, right)[0], dtype=np.float64)


def relative(residual: float, target: float) -> float:
    """Return the root of the ratio of two squares; infinite if only the target is zero."""
    if not target:
        return float("inf") if residual else 0.0
    return float(np.sqrt(residual / target))


Rounds = Sequence[StepEvidence]
