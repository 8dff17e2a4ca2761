"""The examples that virtual clients learn from."""

from dataclasses import dataclass
from typing import final

import torch

from overheard.core.examples import Examples, joined
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.simulation.augment import augmented
from overheard.simulation.parting import Parting

ENOUGH = 100
"""Examples of a class in a half, below which altered copies are made up to this number."""


@final
@dataclass(frozen=True, slots=True)
class Pool:
    """Examples to learn from, and which of them belong to each half."""

    examples: Examples
    halves: tuple[Rows, Rows]


def pool_of(auxiliary: Examples, parting: Parting, seed: Seed) -> Pool:
    """Both halves, each enlarged by itself where it has fewer than `ENOUGH` of a class."""
    parts = [
        augmented(auxiliary.take(rows), ENOUGH, seed.child("augment", half))
        for half, rows in enumerate(parting.halves)
    ]
    first = len(parts[0])
    together = joined(parts)
    return Pool(together, (torch.arange(first), torch.arange(first, len(together))))
