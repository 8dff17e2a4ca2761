"""The order in which a client trains on its examples, and its batches."""

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.recipe import Recipe
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


def epoch_batches(
    recipe: Recipe, seed: Seed, round: int, name: str, epoch: int, examples: int
) -> list[Int[Tensor, " batch"]]:
    """Return the batches of one epoch of one client; they depend on what `epoch_order` does.

    The batches of DP-SGD may be empty.
    """
    private = recipe.private_steps
    if private is not None and private.sampling == "poisson":
        generator = seed.child("batches", round, name, epoch).generator()
        rate = 1 / private.batches
        return [
            (torch.rand(examples, generator=generator, dtype=torch.float64) < rate)
            .nonzero()
            .flatten()
            for _ in range(private.batches)
        ]
    order = epoch_order(seed, round, name, epoch, examples)
    if private is not None:
        return list(torch.tensor_split(order, private.batches))
    return list(torch.split(order, recipe.batch))
