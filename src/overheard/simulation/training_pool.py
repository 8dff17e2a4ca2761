"""The examples on which virtual clients train."""

from dataclasses import dataclass
from typing import final

import torch

from overheard.core.examples import Examples, concatenate_examples
from overheard.core.seeds import Seed
from overheard.core.split import Rows
from overheard.simulation.augment import augment_examples
from overheard.simulation.auxiliary_split import AuxiliarySplit

MIN_PER_CLASS = 100
"""A half with fewer examples of a class is augmented to this number."""


@final
@dataclass(frozen=True, slots=True)
class TrainingPool:
    """Training examples, and the rows of each half."""

    examples: Examples
    halves: tuple[Rows, Rows]


def build_pool(auxiliary: Examples, split: AuxiliarySplit, seed: Seed) -> TrainingPool:
    """Return both halves, each augmented if a class has fewer than `MIN_PER_CLASS`."""
    parts = [
        augment_examples(auxiliary.take(rows), MIN_PER_CLASS, seed.child("augment", half))
        for half, rows in enumerate(split.halves)
    ]
    first = len(parts[0])
    examples = concatenate_examples(parts)
    return TrainingPool(examples, (torch.arange(first), torch.arange(first, len(examples))))
