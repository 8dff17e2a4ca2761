"""Hashes of examples by content."""

import torch
from jaxtyping import Int64, Shaped
from torch import Tensor

from overheard.core.seeds import Seed

CHUNK = 4096
"""Examples hashed at a time, which bounds the memory of the products."""


def content_hashes(inputs: Shaped[Tensor, "examples ..."]) -> Int64[Tensor, " examples"]:
    """Return a hash for each example; equal inputs have equal hashes.

    The bits of the inputs are multiplied by fixed random odd numbers and summed modulo 2^64.
    Two different inputs collide with a probability below 2^-32. This is enough to leave out
    an example as a precaution, but no proof that two examples are equal. Takes 0.1 s for
    60,000 images of 28 x 28.
    """
    # Adding 0 turns -0.0 into 0.0, which is equal but has different bits.
    flat = (inputs.float() + 0.0).flatten(1).contiguous().view(torch.int32)
    generator = Seed(0).child("content keys").generator()
    factors = torch.randint(-(2**62), 2**62, (flat.shape[1],), generator=generator) * 2 + 1
    hashes = torch.empty(len(flat), dtype=torch.int64)
    for start in range(0, len(flat), CHUNK):
        batch = slice(start, start + CHUNK)
        hashes[batch] = (flat[batch].long() * factors).sum(1)
    return hashes
