"""Stratified samples from a pool, disjoint between clients."""

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Rows


def draw_stratified(
    strata: Int[Tensor, " examples"],
    counts: Int[Tensor, "clients strata"],
    classes: int,
    seed: Seed,
) -> tuple[Rows, ...]:
    """Draw the wanted number of examples of each stratum for each client, without overlap.

    Args:
        strata: the stratum of each example in the pool: its label, or user * classes + label.
        counts: how many examples of each stratum each client gets.
        classes: the number of labels; only for the error message.
        seed: determines which examples a client gets, and in what order.

    Returns:
        The rows of each client, in random order.

    Raises:
        PlanError: if a stratum has too few examples; the message names its label.

    """
    check_availability(strata.bincount(minlength=counts.shape[1]), counts.sum(0), classes)
    order = torch.randperm(len(strata), generator=seed.child("pool").generator())
    by_stratum = order[strata[order].argsort(stable=True)]
    sizes = strata.bincount(minlength=counts.shape[1])
    # Within each stratum, client k takes the rows after those of clients 0 to k - 1.
    starts = (sizes.cumsum(0) - sizes) + counts.cumsum(0) - counts  # (clients, strata)
    drawn = []
    for number, (first, lengths) in enumerate(zip(starts, counts, strict=True)):
        rows = by_stratum[_ranges(first, lengths)]
        shuffle = seed.child("client", number).generator()
        drawn.append(rows[torch.randperm(len(rows), generator=shuffle)])
    return tuple(drawn)


def check_availability(
    available: Int[Tensor, " strata"], needed: Int[Tensor, " strata"], classes: int
) -> None:
    """Refuse to draw more examples of a stratum than are available.

    Raises:
        PlanError: if one has too few; the message names the label and both numbers.

    """
    short = (needed > available).nonzero().flatten()
    if not len(short):
        return
    stratum = int(short[0])
    owner = f" of user {stratum // classes}" if len(available) > classes else ""
    raise PlanError(
        f"{int(needed[stratum])} examples{owner} with label {stratum % classes} are needed, "
        f"but {int(available[stratum])} are left: take fewer or smaller clients, fewer rounds "
        "with fresh examples, fewer auxiliary examples, or a composition with less of that "
        "label"
    )


def _ranges(starts: Int[Tensor, " strata"], lengths: Int[Tensor, " strata"]) -> Rows:
    """Concatenate the ranges start, start + 1, ..., start + length - 1."""
    ends = lengths.cumsum(0)
    offsets = (starts - (ends - lengths)).repeat_interleave(lengths)
    return torch.arange(int(lengths.sum())) + offsets
