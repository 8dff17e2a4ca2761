"""Who is who, where no two senders are one user."""

import torch
from jaxtyping import Float
from torch import Tensor

ROUNDS = 200
"""Of corrections: on 100 senders the chances then move by less than a thousandth."""


def one_each(scores: Float[Tensor, "senders users"]) -> Float[Tensor, "senders users"]:
    """Log-chances of each user for each sender, given that no user stands behind two senders.

    Sinkhorn's scaling (1967) with sums of at most 1 over the senders, as some users sent
    nothing: who is claimed by several senders is made dearer for all of them until its chances
    sum to 1 or less. A soft form of the assignment problem, of which it keeps the doubt. Where
    senders are more than users, the chances of each user sum to senders / users.
    """
    price = torch.zeros(scores.shape[1], dtype=scores.dtype)
    for _ in range(ROUNDS):
        chances = (scores - price).log_softmax(1)
        moved = (price + chances.logsumexp(0)).clamp(min=0)
        if torch.allclose(moved, price, atol=1e-4, rtol=0):
            break
        price = moved
    return (scores - price).log_softmax(1)
