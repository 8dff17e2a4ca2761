"""Keeps on the shelf what was learned from a round, for whoever reads that round again."""

from hashlib import blake2b

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.means import Shelf
from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.class_tokens import Readings
from overheard.questions.label_shares.estimators.cross_fit import NETWORKS, CrossFit, cross_fit
from overheard.questions.label_shares.estimators.number_reader import (
    MOST_DIRECTIONS,
    NUMBER_WIDTH,
)
from overheard.questions.label_shares.estimators.token_reader import DROPOUT, TOKEN_WIDTH
from overheard.simulation.keys import text_key


def kept_cross_fit(
    shelf: Shelf,
    readings: Readings,
    shares: Float[Tensor, "clients classes"],
    halves: Int[Tensor, " clients"],
    steps: int,
    seed: Seed,
) -> CrossFit:
    """As `cross_fit`, from the shelf where the same was learned before, to the same bits.

    A round is read by itself and among others: its networks need be trained only once.
    """
    sizes = [] if readings.log_sizes is None else [readings.log_sizes]
    told = (readings.change, readings.answers, readings.before, readings.pull, *sizes)
    shapes = (NETWORKS, MOST_DIRECTIONS, TOKEN_WIDTH, NUMBER_WIDTH, DROPOUT)
    key = text_key(repr((_digest((*told, shares, halves)), shapes, steps, seed)))
    kept = shelf.load(key)
    if kept is not None:
        return CrossFit.from_tensors(kept)
    fit = cross_fit(readings, shares, halves, steps, seed)
    shelf.save(key, fit.tensors())
    return fit


def _digest(tensors: tuple[Tensor, ...]) -> str:
    digest = blake2b(digest_size=20)
    for tensor in tensors:
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
