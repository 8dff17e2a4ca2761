"""Updates trained on pieces of a prior, and what several pieces together would give."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.linkage.prior_updates import KnownUpdates

PIECES = 4
"""Into which the updates of a user are dealt where they do not come in pieces."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """One update a user and round.

    Args:
        vectors: of each.
        people: whose.
        rounds: of each.

    """

    vectors: Float[Tensor, "updates dims"]
    people: Int[Tensor, " updates"]
    rounds: Int[Tensor, " updates"]


def pieces_of(known: KnownUpdates) -> Int[Tensor, " updates"]:
    """Of which piece of its user each update is.

    Those of shadow devices, each of a whole prior, are dealt into `PIECES` in their order.
    """
    if bool(known.chunks.any()):
        return known.chunks
    pieces = torch.zeros_like(known.people)
    for person in range(len(known.names)):
        own = (known.people == person).nonzero().flatten()
        pieces[own] = torch.arange(len(own)) % PIECES
    return pieces


def joined(
    known: KnownUpdates, pieces: Int[Tensor, " updates"], chosen: Collection[int]
) -> Joined:
    """What some pieces together would have sent, by user and round.

    To the first order an update adds up over the examples that it was trained on, so the mean
    of the pieces' updates has the direction of the update on all of them.
    """
    rows = torch.isin(pieces, torch.tensor(sorted(chosen), dtype=pieces.dtype))
    rows = rows.nonzero().flatten()
    width = int(known.rounds.max()) + 1
    own, place = torch.unique(
        known.people[rows] * width + known.rounds[rows], return_inverse=True
    )
    sums = known.vectors.new_zeros(len(own), known.vectors.shape[1])
    sums.index_add_(0, place, known.vectors[rows])
    means = sums.div_(place.bincount(minlength=len(own))[:, None])
    return Joined(means, own // width, own % width)
