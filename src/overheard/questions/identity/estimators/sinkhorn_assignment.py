"""Assignment of senders to users, with at most one sender per user."""

from math import ceil, log

import torch
from jaxtyping import Float
from torch import Tensor

MAX_ITERATIONS = 200
"""Per temperature; for 100 senders, probabilities then change by less than 0.001."""

COOLING_FACTOR = 4.0
"""Factor between successive temperatures."""


def sinkhorn_assignment(
    scores: Float[Tensor, "senders users"],
) -> Float[Tensor, "senders users"]:
    """Return log-probabilities of each user for each sender, given at most one sender per user.

    Sinkhorn's scaling (1967) with sums of at most 1 over the senders, as some users sent
    nothing. A user claimed by several senders gets a price, raised until its probabilities sum
    to 1 or less. This is a soft form of the assignment problem that keeps uncertainty. With
    more senders than users, the probabilities of each user sum to senders / users.

    If scores are far apart, prices converge slowly. They are therefore found at a high
    temperature first (scores divided by a large number), then at lower and lower ones, like
    the epsilon scaling of auction algorithms (Bertsekas 1988).
    """
    price = torch.zeros(scores.shape[1], dtype=scores.dtype)
    for temperature in _temperatures(scores):
        for _ in range(MAX_ITERATIONS):
            log_probabilities = ((scores - price) / temperature).log_softmax(1)
            new_price = (price + temperature * log_probabilities.logsumexp(0)).clamp(min=0)
            if torch.allclose(new_price, price, atol=1e-4 * temperature, rtol=0):
                break
            price = new_price
    return (scores - price).log_softmax(1)


def _temperatures(scores: Float[Tensor, "senders users"]) -> list[float]:
    """Return temperatures from the widest gap between scores of a sender down to 1."""
    finite = scores.where(scores.isfinite(), torch.nan)
    gap = float((scores.amax(1) - finite.nanmedian(1).values).nan_to_num().amax())
    steps = max(0, ceil(log(max(gap, 1.0), COOLING_FACTOR)))
    return [COOLING_FACTOR**step for step in reversed(range(steps + 1))]
