"""Whom a sender may be besides: those who were heard in other rounds alone."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.parties import Party
from overheard.questions.same_sender.claim import SameSender


def same_sender(
    teller: str,
    crowd: Sequence[Party],
    senders: Int[Tensor, " updates"],
    rounds: Int[Tensor, " updates"],
    mine: Int[Tensor, " own"],
    evidence: Float[Tensor, "own updates"],
) -> SameSender:
    """Compare one sender with all who were never heard in a round of its own.

    Nobody answers twice in a round. The score of another is the mean evidence over all pairs of
    an update of the one and an update of the other.

    Args:
        teller: the attack, for the refusal.
        crowd: all who sent something.
        senders: of each update, as a place in the crowd.
        rounds: of each update.
        mine: the updates of the sender that is asked about.
        evidence: of each of these and each update, that they are of one sender.

    Raises:
        NeedsError: if nobody was heard in other rounds alone.

    """
    apart = torch.ones(len(crowd), dtype=torch.bool)
    apart[senders[torch.isin(rounds, rounds[mine])]] = False
    others = apart.nonzero().flatten()
    if not len(others):
        who = crowd[int(senders[mine[0]])]
        raise NeedsError(
            f"{teller} on {who} needs senders that were heard in other "
            "rounds alone: a sender whose name stays the same is nobody else (pseudonyms = "
            "'round')"
        )
    sums = evidence.new_zeros(len(crowd)).index_add_(0, senders, evidence.mean(0))
    means = sums / senders.bincount(minlength=len(crowd))
    return SameSender(tuple(crowd[place] for place in others.tolist()), means[others])
