"""The order in which a client trains on its examples."""

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.seeds import Seed


def epoch_order(
    seed: Seed, round: int, name: str, epoch: int, examples: int
) -> Int[Tensor, " examples"]:
    """Shuffle the indices 0 to examples - 1 for one epoch of one client.

    The order depends on seed, round, client name and epoch only. Engine, device and the rest of
    the cohort do not affect it.
    """
    generator = seed.child("batches", round, name, epoch).generator()
    return torch.randperm(examples, generator=generator)
