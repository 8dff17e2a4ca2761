"""Tells which examples have the same content."""

import torch
from jaxtyping import Int64, Shaped
from torch import Tensor

from overheard.core.seeds import Seed

CHUNK = 4096
"""Examples keyed at a time, which bounds the memory that the products take."""


def content_keys(inputs: Shaped[Tensor, "examples ..."]) -> Int64[Tensor, " examples"]:
    """A number for each example: equal inputs have equal numbers.

    The inputs' bits are multiplied by fixed random odd numbers and summed modulo 2^64. Two
    different inputs share a number with a chance below 2^-32: good enough to leave an
    example out for caution's sake, too little to prove two examples equal. Takes 0.1 s for
    60,000 images of 28 x 28.
    """
    # Adding 0 turns -0.0 into 0.0, which equals it and has other bits.
    flat = (inputs.float() + 0.0).flatten(1).contiguous().view(torch.int32)
    generator = Seed(0).child("content keys").generator()
    factors = torch.randint(-(2**62), 2**62, (flat.shape[1],), generator=generator) * 2 + 1
    keys = torch.empty(len(flat), dtype=torch.int64)
    for start in range(0, len(flat), CHUNK):
        here = slice(start, start + CHUNK)
        keys[here] = (flat[here].long() * factors).sum(1)
    return keys
