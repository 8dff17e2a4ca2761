"""The random direction that a canary client sends in place of an update."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from overheard.core.messages import Weights
from overheard.core.seeds import Seed


def draw_canary_direction(like: Weights, seed: Seed) -> Mapping[str, Tensor]:
    """Draw a direction of L2 norm 1 over all tensors, evenly on the sphere.

    Each tensor has a draw of its own, so the order of names does not matter. Tensors of whole
    numbers, such as counters, get zeros.

    Args:
        like: gives names and shapes.
        seed: of this canary; the same in all rounds.

    """
    draws = {
        name: torch.randn(one.shape, generator=seed.child(name).generator())
        if one.is_floating_point()
        else torch.zeros_like(one)
        for name, one in like.items()
    }
    norm = math.sqrt(sum(float(one.double().square().sum()) for one in draws.values()))
    return {
        name: (one / norm).to(like[name].dtype) if one.is_floating_point() else one
        for name, one in draws.items()
    }
