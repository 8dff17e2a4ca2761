"""Which clients' numbers of examples follow exactly from the sums of these numbers."""

from dataclasses import dataclass
from typing import final

import numpy as np

from overheard.participation.participation import Participation

EXACT = 1e-6
"""Largest error, in examples, that counts as rounding."""


@final
@dataclass(frozen=True, slots=True)
class ExampleCounts:
    """The numbers of examples of clients that follow from their sums.

    Args:
        by_client: the number of examples of each client that is determined, by its place in
            `Participation.clients`.
        is_constant: whether all sums agree with constant, positive whole numbers. If they do
            not, the numbers changed between rounds, and none is determined.

    """

    by_client: dict[int, int]
    is_constant: bool


def solve_example_counts(participation: Participation) -> ExampleCounts | None:
    """Return which clients' numbers of examples follow from their sums.

    Sums of a constant are linear equations without noise: secure aggregation hides a client's
    number, and the totals of cohorts determine it as soon as its unit vector is in the row
    space. Flower's SecAgg+ returns the total weight of each round.

    Returns:
        The numbers; None if no total is known.

    """
    known = [row for row, total in enumerate(participation.totals) if total is not None]
    if not known:
        return None
    weights = participation.took_part[known].astype(np.float64)
    totals = np.array([participation.totals[row] for row in known], dtype=np.float64)
    inverse = np.linalg.pinv(weights)
    counts = inverse @ totals
    if np.abs(weights @ counts - totals).max() > EXACT * max(1.0, float(totals.max())):
        return ExampleCounts({}, is_constant=False)
    places = np.flatnonzero(np.abs((inverse * weights.T).sum(axis=1) - 1) < EXACT)
    found = {int(place): round(float(counts[place])) for place in places}
    whole = [abs(float(counts[place]) - number) for place, number in found.items()]
    if any(number < 0 for number in found.values()) or max(whole, default=0.0) > 0.01:
        return ExampleCounts({}, is_constant=False)
    return ExampleCounts(found, is_constant=True)
