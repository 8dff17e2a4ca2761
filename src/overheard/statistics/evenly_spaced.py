"""Evenly spaced rounds of a run."""

from collections.abc import Sequence


def select_evenly_spaced(rounds: Sequence[int], most: int) -> tuple[int, ...]:
    """Select at most `most` evenly spaced rounds from the first to the last; for 1, the last.

    >>> select_evenly_spaced(range(100), 5)
    (0, 24, 49, 74, 99)
    >>> select_evenly_spaced((3, 4, 8), 2), select_evenly_spaced((3, 4, 8), 1)
    ((3, 8), (8,))
    """
    if most < 1:
        raise ValueError(f"most must be 1 or more, got {most}")
    last = len(rounds) - 1
    if most == 1:
        return tuple(rounds[last:])
    count = min(most, len(rounds))
    return tuple(rounds[index * last // max(1, count - 1)] for index in range(count))
