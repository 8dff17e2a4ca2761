"""What Flower's SecAgg+ sends: keys, masked weights, and one mean in place of all weights."""

from collections.abc import Sequence

import torch

from overheard.core.messages import Weights

SECURE_RECORD = "secaggplus_configs"
"""The record of keys and shares in a message of SecAgg+."""

MASKED_WEIGHTS = "masked_params"
"""The key of masked weights in that record."""

MASKED = "masked by secure aggregation: the server reads the mean of the cohort"
"""Why the weights of a reply are not stored."""

MAX_RESIDUAL = 1e-3
"""Largest distance of the next broadcast from the mean, as a part of the mean update's size."""


def leads_to(delta: Weights, start: Weights, after: Weights) -> bool:
    """Return whether a mean update that is not zero leads from a broadcast to the next one.

    Args:
        delta: the mean update.
        start: the broadcast of its round.
        after: the next broadcast.

    """
    distance = size = 0.0
    for name, change in delta.items():
        if name not in after or after[name].shape != change.shape:
            return False
        wide = change.to(torch.float64)
        moved = after[name].to(torch.float64) - start[name].to(torch.float64)
        distance += float((moved - wide).square().sum())
        size += float(wide.square().sum())
    return size > 0 and distance <= MAX_RESIDUAL**2 * size


def are_one_object(values: Sequence[object]) -> bool:
    """Return whether these are two or more references to one object.

    SecAgg+ puts one mean in place of the weights of all replies, and each reply that arrives
    from a client has weights of its own, even if they are equal.
    """
    return len(values) > 1 and all(one is values[0] for one in values)
