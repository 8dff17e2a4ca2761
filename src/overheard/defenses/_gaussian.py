"""Gaussian noise that is seeded by the defense's context and the name of the parameter."""

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.defense import DefenseContext


def draw_gaussian(
    part: Float[Tensor, "*shape"], name: str, context: DefenseContext
) -> Float[Tensor, "*shape"]:
    """Draw standard Gaussian noise like a tensor; each name has its own seed."""
    generator = context.seed.child(name).generator()
    return torch.randn(part.shape, generator=generator, dtype=part.dtype).to(part.device)
