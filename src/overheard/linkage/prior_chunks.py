"""Chunks of users' prior examples, and mean updates over several chunks."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.linkage.known_updates import KnownUpdates

CHUNKS = 4
"""Number of chunks into which a user's updates are divided if they do not come in chunks."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class MeanUpdates:
    """Mean updates, one a user and round.

    Args:
        vectors: the mean updates.
        users: index of each one's user.
        rounds: round of each.

    """

    vectors: Float[Tensor, "updates dims"]
    users: Int[Tensor, " updates"]
    rounds: Int[Tensor, " updates"]


def chunk_indices(known: KnownUpdates) -> Int[Tensor, " updates"]:
    """Return the chunk number of each update.

    Shadow devices train on all prior examples, so their updates are numbered 0 to `CHUNKS` - 1
    in turn.
    """
    if bool(known.chunks.any()):
        return known.chunks
    chunks = torch.zeros_like(known.users)
    for user in range(len(known.names)):
        user_rows = (known.users == user).nonzero().flatten()
        chunks[user_rows] = torch.arange(len(user_rows)) % CHUNKS
    return chunks


def average_chunks(
    known: KnownUpdates, chunks: Int[Tensor, " updates"], chosen: Collection[int]
) -> MeanUpdates:
    """Average the updates of some chunks, by user and round.

    To first order an update is a sum over its training examples, so the mean over chunks has
    the direction of the update on all of them.
    """
    rows = torch.isin(chunks, torch.tensor(sorted(chosen), dtype=chunks.dtype))
    rows = rows.nonzero().flatten()
    round_count = int(known.rounds.max()) + 1
    groups, group = torch.unique(
        known.users[rows] * round_count + known.rounds[rows], return_inverse=True
    )
    sums = known.vectors.new_zeros(len(groups), known.vectors.shape[1])
    sums.index_add_(0, group, known.vectors[rows])
    means = sums.div_(group.bincount(minlength=len(groups))[:, None])
    return MeanUpdates(means, groups // round_count, groups % round_count)
