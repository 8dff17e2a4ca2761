"""The examples on which virtual clients train."""

from dataclasses import dataclass
from typing import final

import torch

from overheard.core.examples import Examples, concatenate_examples
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.simulation.augment import augmented
from overheard.simulation.parting import Parting

ENOUGH = 100
"""A half with fewer examples of a class is augmented to this number."""


@final
@dataclass(frozen=True, slots=True)
class Pool:
    """Training examples, and the rows of each half."""

    examples: Examples
    halves: tuple[Rows, Rows]


def pool_of(auxiliary: Examples, parting: Parting, seed: Seed) -> Pool:
    """Return both halves, each augmented by itself if it has fewer than `ENOUGH` of a class."""
    parts = [
        augmented(auxiliary.take(rows), ENOUGH, seed.child("augment", half))
        for half, rows in enumerate(parting.halves)
    ]
    first = len(parts[0])
    examples = concatenate_examples(parts)
    return Pool(examples, (torch.arange(first), torch.arange(first, len(examples))))
