"""Few numbers in place of a large tensor, between which distances are about the same."""

from dataclasses import dataclass
from math import prod
from typing import final

import torch
from jaxtyping import Float, Int32, Shaped
from torch import Tensor

from overheard.core.seeds import Seed

RAW = 8192
"""Numbers up to which a tensor is kept as it is."""

WIDTH = 2048
"""Numbers of the sketch of a larger one: an inner product of two vectors of length 1 then has
a standard error of at most (2 / WIDTH)^(1/2) = 0.03."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """Sums the numbers of one tensor in few buckets, each with a sign of its own.

    Charikar, Chen and Farach-Colton 2002 (Finding Frequent Items in Data Streams), one row:
    y_b = sum over the i in bucket b of s_i x_i. It is linear, and inner products of sketches
    are those of the tensors in the mean over buckets and signs. 5,000 updates of a million
    numbers take 20 s of one core and 0.4 GB of memory, read from the disk's cache.

    Args:
        buckets: of each number; None = the tensor is kept as it is.
        signs: of each number, 1 or -1.
        width: how many numbers come out.

    """

    buckets: Int32[Tensor, " params"] | None
    signs: Float[Tensor, " params"]
    width: int

    def of(self, tensor: Shaped[Tensor, "..."]) -> Float[Tensor, " dims"]:
        """The sketch of one tensor of the shape that this was made for, in float32."""
        flat = tensor.detach().to("cpu", torch.float32).flatten()
        if self.buckets is None:
            return flat.clone()
        return torch.zeros(self.width).index_add_(0, self.buckets, flat * self.signs)


def sketch_for(name: str, shape: tuple[int, ...]) -> Sketch:
    """The sketch of all tensors of this name and shape, on which alone its draws hang."""
    size = prod(shape)
    if size <= RAW:
        return Sketch(None, torch.empty(0), size)
    generator = Seed(0).child("sketch", name, *shape).generator()
    buckets = torch.randint(WIDTH, (size,), generator=generator, dtype=torch.int32)
    signs = torch.randint(2, (size,), generator=generator, dtype=torch.float32) * 2 - 1
    return Sketch(buckets, signs, WIDTH)
