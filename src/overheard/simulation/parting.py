"""Which auxiliary examples virtual clients learn from, and which they are read by."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.seeds import Seed
from overheard.core.split import Rows

HELD_OUT_SHARE = 0.2
"""Of each class, for probes."""

MOST_HELD_OUT = 50
"""Of each class: virtual and real clients are read by the same examples, so what is peculiar to
these moves all alike; and 100 would cost two thirds of what training on 600 examples does."""

FEWEST = 3
"""Of each class: one for probes and one for each half."""


@final
@dataclass(frozen=True, slots=True)
class Parting:
    """Rows of the auxiliary examples: held out, and the two halves of the others."""

    held_out: Rows
    halves: tuple[Rows, Rows]


def part(labels: Int[Tensor, " examples"], classes: int, seed: Seed) -> Parting:
    """Part examples at random, class by class, so that every part holds every class.

    About a fifth is held out, at most `MOST_HELD_OUT` a class; of an odd rest the first half
    has one more.

    Raises:
        NeedsError: if a class has too few examples for that.

    """
    counts = labels.bincount(minlength=classes)
    if len(counts) > classes:
        raise ValueError(f"labels must lie between 0 and {classes - 1}")
    if int(counts.min()) < FEWEST:
        raise NeedsError(
            f"virtual clients need {FEWEST} auxiliary examples or more of every class, one to "
            "be read by and one for each half to learn from; there are "
            f"{counts.tolist()} by class: grant more auxiliary examples"
        )
    held_out = (counts * HELD_OUT_SHARE).round().long().clamp(1, MOST_HELD_OUT)
    first = held_out + (counts - held_out + 1) // 2
    order = torch.randperm(len(labels), generator=seed.generator())
    order = order[labels[order].argsort(stable=True)]
    place = torch.arange(len(labels)) - (counts.cumsum(0) - counts)[labels[order]]
    own, middle = held_out[labels[order]], first[labels[order]]
    return Parting(
        order[place < own].sort().values,
        (
            order[(place >= own) & (place < middle)].sort().values,
            order[place >= middle].sort().values,
        ),
    )
