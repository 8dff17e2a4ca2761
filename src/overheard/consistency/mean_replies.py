"""Senders whose replies are the mean of the others: an average that lies among the clients'."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

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
    means = _senders_of(kept, _is_mean_of_others)
    changes = _senders_of(kept, _is_change)
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
    holds: Callable[[ClientReplies, int], bool],
) -> dict[Party, int]:
    """Return for whose replies it always holds, with the first of at least two rounds."""
    rounds, others = dict[Party, list[int]](), set[Party]()
    for number, one, _ in kept:
        for place, sender in enumerate(one.senders):
            if holds(one, place):
                rounds.setdefault(sender, []).append(number)
            else:
                others.add(sender)
    return {
        sender: numbers[0]
        for sender, numbers in rounds.items()
        if sender not in others and len(numbers) >= FEWEST_ROUNDS
    }


def _is_change(one: ClientReplies, place: int) -> bool:
    """Return whether a reply among several different ones is the change of the model."""
    reply, deltas = one.deltas[place].double(), one.deltas.double()
    if len(deltas) <= FEWEST_OTHERS or not bool(reply.any()):
        return False
    are_different = float((deltas - deltas.mean(0)).norm()) > SAME * float(reply.norm())
    return are_different and _are_same(reply, one.changes["c0"])


def _is_mean_of_others(one: ClientReplies, place: int) -> bool:
    rest = [index for index in range(len(one.senders)) if index != place]
    reply, deltas = one.deltas[place].double(), one.deltas[rest].double()
    if len(rest) < FEWEST_OTHERS or not bool(reply.any()):
        return False
    shares = torch.tensor(one.shares, dtype=torch.float64)[rest]
    total = float(shares.sum())
    means = [deltas.mean(0), *([shares @ deltas / total] if total > 0 else [])]
    # Replies that are all the same are the mean of each other, and a fault of another kind.
    spread = float((deltas - deltas.mean(0)).norm())
    return spread > SAME * float(reply.norm()) and any(_are_same(reply, one) for one in means)


def _are_same(one: Float[Tensor, " numbers"], other: Float[Tensor, " numbers"]) -> bool:
    return float((one - other).norm()) <= SAME * float(other.norm())
