"""Draws rows evenly: none is taken again before all were taken."""

import torch
from jaxtyping import Int
from torch import Tensor


def cycled(
    rows: Int[Tensor, " examples"], count: int, generator: torch.Generator
) -> Int[Tensor, " taken"]:
    """So many of these rows, in a drawn order that begins again once all were taken."""
    order = rows[torch.randperm(len(rows), generator=generator)]
    return order.repeat(-(-count // len(rows)))[:count]
