"""The smallest group of clients whose sum can be had from the sums of a run, bracketed."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from math import ceil, comb
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve

MAX_SUBSETS = 20_000
"""Most groups of one size that are tried, so that the bracket costs seconds."""

SUBSETS_AT_ONCE = 4096

MAX_PAIRED = 4_000
"""Distinct cohorts of which all pairs are compared for the upper bound."""

TOLERANCE = 1e-7
"""Largest singular value, of vectors of length 1, that counts as 0."""

ELIMINATIONS, ELIMINATIONS_OF_MANY, MANY = 30, 5, 300
"""Eliminations in different orders; fewer from this many clients on, as each takes long."""


@final
@dataclass(frozen=True, slots=True)
class SmallestGroup:
    """The smallest group of clients whose sum can be had, between two bounds.

    Args:
        at_least: no smaller group can be separated from the others. Proven.
        at_most: the size of `clients`.
        clients: the smallest group found, by number; a weighted sum of these clients alone
            follows from the sums.
        one_apart: the clients by which the cohorts of two rounds differ, and alone do so.

    """

    at_least: int
    at_most: int
    clients: tuple[int, ...]
    one_apart: tuple[int, ...]


def find_smallest_group(took_part: NDArray[np.bool_]) -> SmallestGroup:
    """Return bounds on the smallest group whose sum follows from the sums.

    A weighted sum of clients follows from the sums iff its vector of weights is in the row
    space of the matrix of participation. The smallest support of such a vector is the minimum
    distance of a linear code, which is NP-hard (Vardy 1997), so it is bracketed.

    The lower bound is the best of three. Clients that are always in the same cohorts have equal
    columns, and no vector separates them. All groups of one, two, ... such classes are tried,
    as long as there are few. Vectors in the row space are the linear dependencies of the rows
    of a basis of the null space; the fewest dependent ones are at least 1 + 1 / mu, with mu the
    largest cosine between two rows (Donoho and Elad 2003, theorem 7). The upper bound is the
    smallest support among cohorts, differences of two cohorts, the groups tried, and rows of
    Gaussian eliminations. Weights of clients in the sums change no support.

    Args:
        took_part: (rounds, clients), whether a client is in the sum of a round; each client is
            in one.

    """
    distinct = np.unique(took_part, axis=0)
    columns, class_of = np.unique(distinct, axis=1, return_inverse=True)
    class_of = class_of.reshape(-1)
    sizes = np.bincount(class_of)
    search = _Search(columns.astype(np.float64), sizes)
    search.run()
    members = np.flatnonzero(np.isin(class_of, search.best))
    return SmallestGroup(
        search.at_least,
        len(members),
        tuple(int(one) for one in members),
        _clients_one_apart(took_part),
    )


def _clients_one_apart(took_part: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the clients by which two cohorts differ and alone do so.

    Each cohort has the sum of random 64-bit numbers of its clients: two cohorts differ by a
    client iff their numbers do, but for collisions of a chance of 2^-64 each. So the cost grows
    with the rounds and not with their square.
    """
    draws = np.random.default_rng(0)
    count = took_part.shape[1]
    labels: NDArray[np.uint64] = np.frombuffer(draws.bytes(8 * count), dtype=np.uint64)
    cohorts = np.unique(took_part.astype(np.uint64) @ labels)
    # Sums of numbers wrap at 2^64, in cohorts as here.
    return tuple(
        number
        for number in range(len(labels))
        if np.isin(cohorts + labels[number], cohorts).any()
    )


class _Search:
    """The search for the lightest vector in the row space, over classes of clients.

    Args:
        columns: (rounds, classes), the distinct columns of the matrix.
        sizes: (classes), the number of clients in each class.

    """

    def __init__(self, columns: NDArray[np.float64], sizes: NDArray[np.int64]) -> None:
        self._columns = columns
        self._sizes = sizes
        # The row space alone, so that the memory does not grow with the square of the rounds.
        triangle = np.linalg.qr(columns, mode="r")
        _, values, rows = np.linalg.svd(triangle)
        rank = int((values > values[0] * TOLERANCE).sum())
        self._basis, null = rows[:rank], rows[rank:].T
        lengths = np.linalg.norm(null, axis=1)
        self._is_alone = lengths < TOLERANCE
        # Rows of length 1, so that one tolerance fits all; a row of zeros stays one.
        self._null = null / np.where(self._is_alone, 1, lengths)[:, None]
        self._lightest = np.cumsum(np.sort(sizes))
        self.best: NDArray[np.int64] = np.arange(len(sizes))
        self.at_least = int(sizes.min())

    @property
    def _weight(self) -> int:
        return int(self._sizes[self.best].sum())

    def run(self) -> None:
        """Narrow the bracket until it is closed or becomes expensive."""
        for support in self._quick_supports():
            self._try(support)
        self._raise(self._fewest_dependent())
        if self.at_least < self._weight:
            for support in self._eliminations():
                self._try(support)
        for count in range(1, len(self._sizes) + 1):
            is_closed = self.at_least >= self._weight
            if is_closed or comb(len(self._sizes), count) > MAX_SUBSETS:
                break
            for chosen in self._dependent(count):
                self._try(chosen)
            self._raise(count + 1)
        self.at_least = min(self.at_least, self._weight)

    def _try(self, support: NDArray[np.int64]) -> None:
        if len(support) and self._sizes[support].sum() < self._weight:
            self.best = support

    def _raise(self, classes: int) -> None:
        """Raise the lower bound: every group that is not lighter has this many classes."""
        within = min(classes, len(self._lightest))
        self.at_least = max(self.at_least, min(int(self._lightest[within - 1]), self._weight))

    def _quick_supports(self) -> Iterator[NDArray[np.int64]]:
        """Yield single classes, pairs, cohorts, and differences of cohorts."""
        yield from np.flatnonzero(self._is_alone)[:, None]
        cosines = np.abs(self._cosines())
        is_pair = np.triu(cosines > 1 - TOLERANCE**2 / 2, 1)
        yield from np.argwhere(is_pair)
        for row in self._columns:
            yield np.flatnonzero(row)
        cohorts = self._columns[:MAX_PAIRED]
        weighted = cohorts * self._sizes
        counts = weighted.sum(axis=1)
        apart = counts[:, None] + counts[None, :] - 2 * weighted @ cohorts.T
        apart[apart < 0.5] = np.inf
        first, second = np.unravel_index(int(apart.argmin()), apart.shape)
        if np.isfinite(apart[first, second]):
            yield np.flatnonzero(cohorts[first] != cohorts[second])

    def _cosines(self) -> NDArray[np.float64]:
        return self._null @ self._null.T

    def _fewest_dependent(self) -> int:
        """Return a lower bound on how many classes a vector in the row space has."""
        if self._is_alone.any() or len(self._sizes) < 2 or not self._null.shape[1]:
            return 1
        cosines = np.abs(self._cosines())
        np.fill_diagonal(cosines, 0)
        # Rounded down a little, as the cosine is not exact.
        return ceil(1 + 1 / float(cosines.max()) - 1e-6) if cosines.max() > 0 else 1

    def _dependent(self, count: int) -> Iterator[NDArray[np.int64]]:
        """Yield all groups of so many classes whose rows of the null space are dependent."""
        groups = combinations(range(len(self._sizes)), count)
        while chosen := list(islice(groups, SUBSETS_AT_ONCE)):
            rows = np.array(chosen)
            if count > self._null.shape[1]:
                yield from rows
                continue
            smallest = np.linalg.svd(self._null[rows], compute_uv=False)[:, -1]
            yield from rows[smallest < TOLERANCE]

    def _eliminations(self) -> Iterator[NDArray[np.int64]]:
        """Yield the supports of rows of reduced echelon forms, in several orders of columns.

        The orders are drawn with a fixed seed, so that a bracket can be computed again.
        """
        draws = np.random.default_rng(0)
        is_large = len(self._sizes) >= MANY
        for _ in range(ELIMINATIONS_OF_MANY if is_large else ELIMINATIONS):
            # Classes of many clients become pivots, so that most rows avoid them.
            scale = self._sizes * np.exp(draws.normal(size=len(self._sizes)))
            pivots = qr(self._basis * scale, mode="r", pivoting=True)[1][: len(self._basis)]
            reduced = solve(self._basis[:, pivots], self._basis)
            for row in np.abs(reduced) > TOLERANCE:
                yield np.flatnonzero(row)
