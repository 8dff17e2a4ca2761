"""Estimates of a client's number of examples from the length of its update."""

from collections.abc import Callable
from math import exp, log, sqrt

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import stdtrit
from torch import Tensor

from overheard.core.claims import INTERVAL_LEVEL
from overheard.questions.label_shares.claim import SizeEstimate

LARGEST_SIZE = 20_000
"""Largest size of a virtual client that is trained to measure its update, in examples."""

BISECTIONS = 8
"""Halvings of the range on a log scale: they narrow a range of 100 to 1 to 2 %."""


def estimate_by_doubling(
    norm_of: Callable[[int], float], goal: float, guess: int, tolerance: float
) -> SizeEstimate:
    """Search by doubling and halving, as published (Ma et al. 2025, Algorithm 1).

    The size of a virtual client is doubled while the norm of its update is too small, and
    halved while it is too large. Only sizes of guess * 2^k can be found. If no size meets
    the condition, the published algorithm alternates between two sizes forever. This one stops
    when a size repeats or leaves the range from 1 to `LARGEST_SIZE`. It then returns the tried
    size with the nearest norm, marked as not converged.

    Args:
        norm_of: length of the update of a virtual client of this size.
        goal: length of the target's update.
        guess: the first size.
        tolerance: largest difference in length, relative to the goal: the paper's epsilon,
            whose value it does not state.

    """
    tried: dict[int, float] = {}
    size = guess
    while size not in tried and 1 <= size <= LARGEST_SIZE:
        tried[size] = norm_of(size)
        if abs(tried[size] - goal) < tolerance * goal:
            return SizeEstimate(float(size))
        size = 2 * size if tried[size] < goal else size // 2
    nearest = min(tried, key=lambda size: abs(tried[size] - goal))
    return SizeEstimate(float(nearest), converged=False)


def estimate_by_bisection(
    norms_of: Callable[[int], Float[Tensor, " replicates"]],
    goal: float,
    smallest: int,
    largest: int,
) -> SizeEstimate:
    """Search by bisecting a range of sizes on a log scale, with several clients of each size.

    Overheard's method. The interval contains the sizes at which a new client's log norm could
    equal the goal's. The mean log norm is interpolated linearly between the tried sizes and
    made monotone. A t interval describes how clients vary about it. Replicates may have the
    same label shares at every size, so the sizes together have the degrees of freedom of one.
    If the norm does not grow with size, the interval is the whole range. The search has not
    converged if the goal is outside what the range explains.

    Args:
        norms_of: lengths of the updates of some virtual clients of this size, at least 2.
        goal: length of the target's update.
        smallest: smallest size of the range.
        largest: largest size of the range.

    """
    logs = {size: norms_of(size).double().log() for size in {smallest, largest}}
    low, high = log(smallest), log(largest)
    for _ in range(BISECTIONS):
        middle = round(exp((low + high) / 2))
        if middle not in logs:
            logs[middle] = norms_of(middle).double().log()
        if float(logs[middle].mean()) < log(goal):
            low = log(middle)
        else:
            high = log(middle)
    sizes = sorted(logs)
    norms = torch.stack([logs[size] for size in sizes])  # (sizes, replicates)
    replicates = norms.shape[1]
    deviation = float(norms.var(1).mean().sqrt()) * sqrt(1 + 1 / replicates)
    margin = deviation * float(stdtrit(replicates - 1, (1 + INTERVAL_LEVEL) / 2))
    means = np.maximum.accumulate(norms.mean(1).numpy())
    ends = np.interp([log(goal) - margin, log(goal), log(goal) + margin], means, np.log(sizes))
    low, examples, high = (exp(end) for end in np.maximum.accumulate(ends))
    reached = means[0] - margin <= log(goal) <= means[-1] + margin
    return SizeEstimate(examples, low, high, converged=bool(reached))
