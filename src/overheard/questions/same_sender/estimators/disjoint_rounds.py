"""Comparison of a sender with senders observed only in other rounds."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.parties import Party
from overheard.questions.same_sender.claim import SameSender


def compare_senders(
    attack: str,
    crowd: Sequence[Party],
    senders: Int[Tensor, " updates"],
    rounds: Int[Tensor, " updates"],
    own: Int[Tensor, " own"],
    evidence: Float[Tensor, "own updates"],
) -> SameSender:
    """Compare one sender with all that share no round with it.

    A sender sends one update per round. The score of another sender is the mean evidence over
    all pairs of their updates.

    Args:
        attack: name of the attack, for the error message.
        crowd: all senders.
        senders: sender of each update, as an index into the crowd.
        rounds: round of each update.
        own: indices of the updates of the target sender.
        evidence: evidence that each of these and each update come from one sender.

    Raises:
        NeedsError: if every other sender shares a round with the target.

    """
    is_comparable = torch.ones(len(crowd), dtype=torch.bool)
    is_comparable[senders[torch.isin(rounds, rounds[own])]] = False
    others = is_comparable.nonzero().flatten()
    if not len(others):
        target = crowd[int(senders[own[0]])]
        raise NeedsError(
            f"{attack} on {target} needs senders that were observed only in other rounds: set "
            "pseudonyms = 'round', as senders with lasting names need no linking"
        )
    sums = evidence.new_zeros(len(crowd)).index_add_(0, senders, evidence.mean(0))
    means = sums / senders.bincount(minlength=len(crowd))
    return SameSender(tuple(crowd[index] for index in others.tolist()), means[others])
