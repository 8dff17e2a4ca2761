"""How many examples virtual clients hold."""

import math

from overheard.core.messages import Aggregate, Update
from overheard.core.prior import Prior
from overheard.core.seeds import Seed
from overheard.core.view import View

HIDDEN_SIZES = (50, 5000)
"""What a client may hold where nobody says: from a person's phone to a small firm."""

SPREAD = 2.0
"""Where only some sizes are told, or a total: this many times less or more may be held."""


def size_range(view: View, prior: Prior) -> tuple[int, int]:
    """The smallest and the largest size that a virtual client may have.

    As the prior says; else from the smallest to the largest that updates of others tell in
    clear, no further, as the size of the last and smaller batch decides how well labels can be
    read; where some hide theirs, up to `SPREAD` times further; else about the mean size that
    aggregates tell; else `HIDDEN_SIZES`. That an observer knows its own size says nothing of
    the others'.
    """
    if prior.sizes is not None:
        return prior.sizes
    bodies = [m.body for m in view.messages if m.sender not in view.observers]
    sizes = [body.examples for body in bodies if isinstance(body, Update)]
    told = [size for size in sizes if size]
    if told and len(told) == len(sizes):
        return min(told), max(told)
    if told:
        return _range(min(told) / SPREAD, max(told) * SPREAD)
    means = [
        body.examples / len(body.cohort)
        for body in bodies
        if isinstance(body, Aggregate) and body.examples and body.cohort
    ]
    if means:
        return _range(min(means) / SPREAD, max(means) * SPREAD)
    return HIDDEN_SIZES


def draw_size(sizes: tuple[int, int], seed: Seed) -> int:
    """A size in this range, all scales equally likely."""
    low, high = math.log(sizes[0]), math.log(sizes[1] + 1)
    drawn = int(math.exp(low + (high - low) * float(seed.numpy().random())))
    return min(max(drawn, sizes[0]), sizes[1])


def one_scale(sizes: tuple[int, int], seed: Seed) -> tuple[int, int]:
    """A part of this range that spans no more than `SPREAD` either way, anywhere in it.

    The sum over a cohort whose members are of all scales at once would hardly vary.
    """
    low, high = sizes[0] * SPREAD, sizes[1] / SPREAD
    if high <= low:
        return sizes
    middle = draw_size((math.floor(low), math.ceil(high)), seed)
    return max(sizes[0], math.floor(middle / SPREAD)), min(sizes[1], math.ceil(middle * SPREAD))


def _range(low: float, high: float) -> tuple[int, int]:
    smallest = max(1, math.floor(low))
    return smallest, max(smallest, math.ceil(high))
