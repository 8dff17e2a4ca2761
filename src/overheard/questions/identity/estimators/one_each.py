"""Who is who, where no two senders are one user."""

from math import ceil, log

import torch
from jaxtyping import Float
from torch import Tensor

ROUNDS = 200
"""Of corrections at each warmth: on 100 senders chances then move by less than a thousandth."""

COOLING = 4.0
"""By which scores are divided less from one warmth to the next."""


def one_each(scores: Float[Tensor, "senders users"]) -> Float[Tensor, "senders users"]:
    """Log-chances of each user for each sender, given that no user stands behind two senders.

    Sinkhorn's scaling (1967) with sums of at most 1 over the senders, as some users sent
    nothing: who is claimed by several senders is made dearer for all of them until its chances
    sum to 1 or less. A soft form of the assignment problem, of which it keeps the doubt. Where
    senders are more than users, the chances of each user sum to senders / users.

    Scores far apart leave no doubt, and prices then move by little at a time: they are found
    for scores divided by a large number first, and from there for less and less divided ones
    (as auctions scale their epsilon: Bertsekas 1988).
    """
    price = torch.zeros(scores.shape[1], dtype=scores.dtype)
    for warmth in _warmths(scores):
        for _ in range(ROUNDS):
            chances = ((scores - price) / warmth).log_softmax(1)
            moved = (price + warmth * chances.logsumexp(0)).clamp(min=0)
            if torch.allclose(moved, price, atol=1e-4 * warmth, rtol=0):
                break
            price = moved
    return (scores - price).log_softmax(1)


def _warmths(scores: Float[Tensor, "senders users"]) -> list[float]:
    """From the widest gap between scores of a sender down to 1."""
    finite = scores.where(scores.isfinite(), torch.nan)
    gap = float((scores.amax(1) - finite.nanmedian(1).values).nan_to_num().amax())
    steps = max(0, ceil(log(max(gap, 1.0), COOLING)))
    return [COOLING**step for step in reversed(range(steps + 1))]
