"""Sizes of virtual clients, in examples."""

import math

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Prior
from overheard.core.messages import Aggregate, Update
from overheard.core.seeds import Seed
from overheard.core.view import View

DEFAULT_SIZES = (50, 5000)
"""Plausible sizes if none is reported: from a person's phone to a small company."""

SIZE_MARGIN = 2.0
"""If only some sizes, or totals, are reported: the factor by which others may differ."""

MOST_EXAMPLES = 10**6
"""The largest reported size on which training is based; a client may report any number."""


def size_range(view: View, prior: Prior) -> tuple[int, int]:
    """Return the smallest and the largest size of virtual clients.

    The first of these that is available:

    - the sizes of the prior;
    - the range of the sizes that updates report, if all of them do. It is not extended, since
      the size of the last, smaller batch decides how well labels can be inferred;
    - this range, extended by the factor `SIZE_MARGIN`, if some updates hide their size;
    - `SIZE_MARGIN` around the mean sizes that aggregates report;
    - `DEFAULT_SIZES`.

    Messages of the observers themselves are ignored.

    Raises:
        NeedsError: if messages report more than `MOST_EXAMPLES`.

    """
    if prior.sizes is not None:
        return prior.sizes
    smallest, largest = _reported_range(view)
    if largest > MOST_EXAMPLES:
        raise NeedsError(
            "virtual clients need a plausible size, but by what messages report it would be up "
            f"to {largest:,} examples, more than {MOST_EXAMPLES:,}: set virtual.examples"
        )
    return smallest, largest


def _reported_range(view: View) -> tuple[int, int]:
    """Return the range of sizes by what messages report; `DEFAULT_SIZES` if they do not."""
    bodies = [m.body for m in view.messages if m.sender not in view.observers]
    sizes = [body.examples for body in bodies if isinstance(body, Update)]
    reported = [size for size in sizes if size]
    if reported and len(reported) == len(sizes):
        return min(reported), max(reported)
    if reported:
        return _rounded_range(min(reported) / SIZE_MARGIN, max(reported) * SIZE_MARGIN)
    means = [
        body.examples / len(body.cohort)
        for body in bodies
        if isinstance(body, Aggregate) and body.examples and body.cohort
    ]
    if means:
        return _rounded_range(min(means) / SIZE_MARGIN, max(means) * SIZE_MARGIN)
    return DEFAULT_SIZES


def plausible_sizes(view: View, prior: Prior) -> tuple[int, int]:
    """Return what `size_range` returns, or `DEFAULT_SIZES` where it refuses the sizes."""
    try:
        return size_range(view, prior)
    except NeedsError:
        return DEFAULT_SIZES


def mean_size(sizes: tuple[int, int]) -> float:
    """Return the mean of log-uniform sizes in this range."""
    low, high = sizes[0], sizes[1] + 1
    return (high - low) / math.log(high / low)


def draw_size(sizes: tuple[int, int], seed: Seed) -> int:
    """Draw a log-uniform size in this range."""
    low, high = math.log(sizes[0]), math.log(sizes[1] + 1)
    size = int(math.exp(low + (high - low) * float(seed.numpy().random())))
    return min(max(size, sizes[0]), sizes[1])


def draw_size_range(sizes: tuple[int, int], seed: Seed) -> tuple[int, int]:
    """Draw a sub-range that extends by the factor `SIZE_MARGIN` around a random size.

    The total size of a cohort with members of all scales would hardly vary.
    """
    low, high = sizes[0] * SIZE_MARGIN, sizes[1] / SIZE_MARGIN
    if high <= low:
        return sizes
    middle = draw_size((math.floor(low), math.ceil(high)), seed)
    return max(sizes[0], math.floor(middle / SIZE_MARGIN)), min(
        sizes[1], math.ceil(middle * SIZE_MARGIN)
    )


def _rounded_range(low: float, high: float) -> tuple[int, int]:
    smallest = max(1, math.floor(low))
    return smallest, max(smallest, math.ceil(high))
