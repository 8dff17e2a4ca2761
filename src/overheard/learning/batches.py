"""In which order a member meets its examples."""

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.seeds import Seed


def epoch_order(
    seed: Seed, round: int, name: str, epoch: int, examples: int
) -> Int[Tensor, " examples"]:
    """Shuffle the places 0 to examples - 1 for one epoch of one member.

    The order hangs on seed, round, name and epoch alone: neither the engine nor the device nor
    who else is in the cohort can move it.
    """
    generator = seed.child("batches", round, name, epoch).generator()
    return torch.randperm(examples, generator=generator)
