"""How many examples a client trained on, as far as the length of its update tells."""

from collections.abc import Callable
from math import exp, log, sqrt

import numpy as np
import torch
from jaxtyping import Float
from scipy.stats import t as student
from torch import Tensor

from overheard.core.claims import INTERVAL_LEVEL
from overheard.questions.label_shares.claim import SizeEstimate

LARGEST_SIZE = 20_000
"""Examples of a virtual client, above which none is trained to measure its update."""

BISECTIONS = 8
"""Halvings of the range on a log scale: one of 100 to 1 is left 2 % wide."""


def doubling(
    norm_of: Callable[[int], float], goal: float, guess: int, tolerance: float
) -> SizeEstimate:
    """Search by doubling and halving, as published (Ma et al. 2025, Algorithm 1).

    While the norm of a virtual client's update is too small its size is doubled, while too
    large halved. Only sizes of guess * 2^k can be found. Where none of them meets the
    condition the algorithm as published never ends, swinging between two sizes; here it ends
    as soon as it comes to a size again, or leaves the range from 1 to `LARGEST_SIZE`, takes
    the size tried whose norm was nearest, and says that it has not converged.

    Args:
        norm_of: length of the update of a virtual client of this size.
        goal: length of the target's update.
        guess: the size to begin with.
        tolerance: how far the lengths may differ, as a part of the goal; the paper's epsilon,
            which it does not give.

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


def bisection(
    norms_of: Callable[[int], Float[Tensor, " replicates"]],
    goal: float,
    smallest: int,
    largest: int,
) -> SizeEstimate:
    """Search by halving a range of sizes on a log scale, with several clients of each size.

    Ours. The interval holds the sizes at which one more client's log norm could be the goal's:
    between the sizes that were tried the mean log norm runs straight, kept from falling, and
    a client lies about it as the replicates do (a t interval; as they may have the same
    make-ups at every size, all sizes together tell no more of the spread than one). Where the
    norm does not grow with size the interval is the whole range. It has not converged where
    the goal is outside of what the range explains.

    Args:
        norms_of: lengths of the updates of some virtual clients of this size, at least 2.
        goal: length of the target's update.
        smallest: end of the range.
        largest: other end.

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
    spread = float(norms.var(1).mean().sqrt()) * sqrt(1 + 1 / replicates)
    margin = spread * float(student.ppf((1 + INTERVAL_LEVEL) / 2, replicates - 1))
    means = np.maximum.accumulate(norms.mean(1).numpy())
    ends = np.interp([log(goal) - margin, log(goal), log(goal) + margin], means, np.log(sizes))
    low, examples, high = (exp(end) for end in np.maximum.accumulate(ends))
    reached = means[0] - margin <= log(goal) <= means[-1] + margin
    return SizeEstimate(examples, low, high, converged=bool(reached))
