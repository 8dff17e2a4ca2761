"""How the error of attacks that train virtual clients falls with their counts, as measured."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from overheard.planning.simulation_counts import SimulationCounts

Curve = Sequence[tuple[int, float]]
"""Counts in rising order, and the error with each, relative to that with the last."""

ERROR_BY_CLIENTS: Mapping[str, Curve] = MappingProxyType(
    {
        "amortised": ((64, 1.21), (256, 1.06), (1200, 1.0)),
        "ldia": ((64, 2.7), (256, 1.87), (1200, 1.0)),
        "ppa": ((64, 1.24), (256, 1.05), (1200, 1.0)),
        "whispers": ((64, 1.54), (256, 1.21), (1200, 1.0)),
    }
)
"""By attack, the error by number of virtual clients."""

ERROR_BY_ROUNDS: Mapping[str, Curve] = MappingProxyType(
    {
        "amortised": ((1, 1.05), (3, 1.0)),
        "ldia": ((1, 1.38), (3, 1.0)),
        "whispers": ((1, 1.21), (3, 1.0)),
    }
)
"""By attack, the error by number of rounds. `ppa` reads one round."""

MEASURED_ON = "measured on small networks: docs/label-shares.md"


def expected_errors(
    counts: SimulationCounts, largest: SimulationCounts, attacks: Sequence[str]
) -> dict[str, float]:
    """Return the expected error of each measured attack, relative to the largest counts.

    Beyond the measured counts, the error is taken as that of the nearest measured one. Measured
    figures from small networks may not hold for others.

    Args:
        counts: the counts.
        largest: the counts that it is compared with.
        attacks: names of attacks; those that were never measured are left out.

    """
    errors = {}
    for name in attacks:
        if (by_clients := ERROR_BY_CLIENTS.get(name)) is None:
            continue
        by_rounds = ERROR_BY_ROUNDS.get(name, ((1, 1.0),))
        ratio = _error(by_clients, counts.clients) / _error(by_clients, largest.clients)
        ratio *= _error(by_rounds, counts.rounds) / _error(by_rounds, largest.rounds)
        errors[name] = ratio
    return errors


def _error(curve: Curve, count: int) -> float:
    """Interpolate between the measured points, on a logarithmic scale of counts."""
    if count <= curve[0][0]:
        return curve[0][1]
    for (low, error), (high, next_error) in pairwise(curve):
        if count <= high:
            share = math.log(count / low) / math.log(high / low)
            return error + share * (next_error - error)
    return curve[-1][1]
