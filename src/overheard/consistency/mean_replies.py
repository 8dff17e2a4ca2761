"""Senders whose replies are the mean of the others: an average that lies among the clients'."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.linalg import vector_norm

from overheard.consistency.evidence import ClientReplies
from overheard.consistency.proof import MessageFault
from overheard.core.parties import Party

SAME = 1e-3
"""Largest relative distance of a mean that was computed in 32 bits."""

FEWEST_OTHERS = 2
"""Fewest other replies of a mean that is no copy of one of them."""

FEWEST_ROUNDS = 2
"""Fewest rounds in which a reply is the mean by more than chance."""

MEAN = "its replies are the mean of all others, as if the new global model lay among them"
CHANGE = "its replies are the change of the model itself, as if the new model lay among them"
CHANGE_MEND = "check that its replies are a client's own"
MEND = "leave the file of the mean out, and import or record again"


def find_mean_replies(
    kept: Sequence[tuple[int, ClientReplies, float]],
) -> tuple[MessageFault, ...]:
    """Return a fault for each sender all of whose replies are a mean of the clients.

    That they are the change of the model is a warning: a server may take one reply alone.

    Args:
        kept: single replies of the first rounds, by number of the round.

    """
    means = _senders_of(kept, _are_mean_of_others)
    changes = _senders_of(kept, _are_change)
    return (
        *(MessageFault(first, one, f"{one}: {MEAN}", MEND) for one, first in means.items()),
        *(
            MessageFault(first, one, f"{one}: {CHANGE}", CHANGE_MEND, is_refusal=False)
            for one, first in changes.items()
            if one not in means
        ),
    )


def _senders_of(
    kept: Sequence[tuple[int, ClientReplies, float]],
    marked: Callable[[ClientReplies], Bool[Tensor, " replies"]],
) -> dict[Party, int]:
    """Return whose replies are always marked, with the first of at least two rounds."""
    rounds, others = dict[Party, list[int]](), set[Party]()
    for number, one, _ in kept:
        for sender, holds in zip(one.senders, marked(one).tolist(), strict=True):
            if holds:
                rounds.setdefault(sender, []).append(number)
            else:
                others.add(sender)
    return {
        sender: numbers[0]
        for sender, numbers in rounds.items()
        if sender not in others and len(numbers) >= FEWEST_ROUNDS
    }


def _are_change(one: ClientReplies) -> Bool[Tensor, " replies"]:
    """Mark the replies among several different ones that are the change of the model."""
    deltas = one.deltas.double()
    sizes = vector_norm(deltas, dim=1)
    are_different = vector_norm(deltas - deltas.mean(0)) > SAME * sizes
    if len(deltas) <= FEWEST_OTHERS:
        return torch.zeros(len(deltas), dtype=torch.bool)
    return torch.logical_and(are_different & (sizes > 0), _are_same(deltas, one.changes["c0"]))


def _are_mean_of_others(one: ClientReplies) -> Bool[Tensor, " replies"]:
    """Mark the replies that are the mean of the others, which differ from each other.

    The means of all but one are found from the mean of all, as there may be many replies.
    """
    deltas = one.deltas.double()
    rest = len(deltas) - 1
    if rest < FEWEST_OTHERS:
        return torch.zeros(len(deltas), dtype=torch.bool)
    offsets = deltas - deltas.mean(0)
    squares = offsets.square().sum(1)
    are_mean = _are_same(deltas, deltas.mean(0) - offsets / rest)
    shares = torch.tensor(one.shares, dtype=torch.float64)[:, None]
    left = shares.sum() - shares
    weighted = ((shares * deltas).sum(0) - shares * deltas) / left
    are_mean |= _are_same(deltas, weighted) & (left[:, 0] > 0)
    # Replies that are all the same are the mean of each other, and a fault of another kind.
    spreads = (squares.sum() - squares * (1 + 1 / rest)).clamp(min=0).sqrt()
    sizes = vector_norm(deltas, dim=1)
    return torch.logical_and(are_mean & (sizes > 0), spreads > SAME * sizes)


def _are_same(
    some: Float[Tensor, "replies numbers"], others: Float[Tensor, "*replies numbers"]
) -> Bool[Tensor, " replies"]:
    return torch.le(vector_norm(some - others, dim=1), SAME * vector_norm(others, dim=-1))
