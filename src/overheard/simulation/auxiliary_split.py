"""The split of auxiliary examples into those for probes and four quarters for training."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.compute_settings import HELD_OUT_PER_CLASS
from overheard.core.errors import NeedsError
from overheard.core.seeds import Seed
from overheard.core.split import Rows

Quarters = tuple[tuple[Rows, Rows], tuple[Rows, Rows]]
"""The rows of the two quarters of each half."""

HELD_OUT_SHARE = 0.2
"""The share of each class that is held out for probes."""

MIN_PER_CLASS = 3
"""The fewest examples per class: one for probes and one for each half."""


@final
@dataclass(frozen=True, slots=True)
class AuxiliarySplit:
    """Rows of the auxiliary examples: held-out ones, and the others in halves of two quarters.

    The quarters of a half share an example only if it is the single one of its class there.
    """

    held_out: Rows
    quarters: Quarters

    @property
    def halves(self) -> tuple[Rows, Rows]:
        """The rows of each half, in ascending order."""
        first, second = (torch.unique(torch.cat(quarters)) for quarters in self.quarters)
        return first, second


def split_auxiliary(
    labels: Int[Tensor, " examples"],
    classes: int,
    seed: Seed,
    most_held_out: int = HELD_OUT_PER_CLASS,
) -> AuxiliarySplit:
    """Split examples at random, class by class, so that every part has every class.

    About a fifth is held out, at most `most_held_out` per class. If the rest is odd, the first
    half has one more, and likewise for the quarters of a half.

    Raises:
        NeedsError: if a class has too few examples.

    """
    counts = labels.bincount(minlength=classes)
    if len(counts) > classes:
        raise ValueError(f"labels must lie between 0 and {classes - 1}")
    if int(counts.min()) < MIN_PER_CLASS:
        raise NeedsError(
            f"virtual clients need {MIN_PER_CLASS} auxiliary examples or more of every class "
            "(one for probes, one for each half of the training examples), but there are "
            f"{counts.tolist()} by class: grant more auxiliary examples"
        )
    held_out = (counts * HELD_OUT_SHARE).round().long().clamp(1, most_held_out)
    first = held_out + (counts - held_out + 1) // 2
    order = torch.randperm(len(labels), generator=seed.generator())
    order = order[labels[order].argsort(stable=True)]
    rank = torch.arange(len(labels)) - (counts.cumsum(0) - counts)[labels[order]]
    label = labels[order]
    probe_end, half_end, end = held_out[label], first[label], counts[label]
    first_half = _halve(order, rank, probe_end, half_end)
    second_half = _halve(order, rank, half_end, end)
    return AuxiliarySplit(order[rank < probe_end].sort().values, (first_half, second_half))


def _halve(
    order: Rows, rank: Rows, begin: Int[Tensor, " examples"], end: Int[Tensor, " examples"]
) -> tuple[Rows, Rows]:
    """Return the two quarters of a half: the ranks of each example's class in [begin, end)."""
    is_inside = (rank >= begin) & (rank < end)
    is_single = end - begin == 1
    middle = begin + (end - begin + 1) // 2
    return (
        order[is_inside & (rank < middle)].sort().values,
        order[is_inside & ((rank >= middle) | is_single)].sort().values,
    )
