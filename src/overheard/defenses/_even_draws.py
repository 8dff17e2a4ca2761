"""Draws in which no row is repeated before all rows were drawn."""

import torch
from jaxtyping import Int
from torch import Tensor


def draw_evenly(
    rows: Int[Tensor, " examples"], count: int, generator: torch.Generator
) -> Int[Tensor, " taken"]:
    """Draw `count` rows by repeating one random order of all rows."""
    order = rows[torch.randperm(len(rows), generator=generator)]
    return order.repeat(-(-count // len(rows)))[:count]
