"""Some of the rounds of a run, so chosen that they tell of all of it."""

from collections.abc import Sequence


def spread(rounds: Sequence[int], most: int) -> tuple[int, ...]:
    """At most so many of these, evenly from the first to the last; of one, the last.

    >>> spread(range(100), 5), spread((3, 4, 8), 2), spread((3, 4, 8), 1)
    ((0, 24, 49, 74, 99), (3, 8), (8,))
    """
    if most < 1:
        raise ValueError(f"1 round or more is to be chosen, got {most}")
    last = len(rounds) - 1
    if most == 1:
        return tuple(rounds[last:])
    count = min(most, len(rounds))
    return tuple(rounds[place * last // max(1, count - 1)] for place in range(count))
