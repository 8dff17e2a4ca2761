"""Samples of the weights in messages: some numbers, at the same places in every message."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import hardshrink

from overheard.archive.weights import Shapes, StoredWeights
from overheard.core.errors import TranscriptError
from overheard.core.messages import Weights

MAX_NUMBERS_OF_TENSOR = 2**16
"""Most numbers of one tensor in a sample."""

MAX_STATED_NUMBERS = 2**62
"""Most numbers that a tensor may have by the shape that its message states."""

MAX_NUMBERS_OF_MODEL = 2**16
"""Most numbers of all tensors in a sample: 50 rounds of 10 clients then take some 1.5 s."""

LARGEST = torch.finfo(torch.float32).max
"""Largest number of a model; the squares of squares of larger ones can be infinite."""

SMALLEST = 2.0**-149
"""Smallest positive number of 32 bits. Numbers up to it count as zero, since the squares of
squares of smaller ones can be zero."""

FLOAT32_SUM_ERROR = 2**-21
"""Relative error of a sum that a server computes in 32 bits: four times the relative distance
of neighbouring numbers."""

ROUND_NUMBER_BITS = 5
"""Most binary digits of round numbers such as 0.5, which do not show their precision."""

BLOCK = 1024
"""Numbers that are read in a row: a page of a mapped file (4 KiB) holds so many of 32 bits."""

MAX_NUMBERS_OF_REPLY = 2**12
"""Most numbers of a single reply, in the smaller sample that compares replies."""

BATCH_NORM_STATISTICS = (
    "running_mean",
    "running_var",
    "moving_mean",
    "moving_variance",
    "num_batches_tracked",
)
"""Endings of the names of batch norms' running statistics. Many servers do not treat them as
weights: they leave them out, or give them no momentum."""


@final
@dataclass(frozen=True, slots=True)
class SamplePlan:
    """Which numbers of each tensor are read.

    Args:
        shapes: the shapes of all tensors of the model.
        blocks: by tensor, where its parts begin and end (not included) in its flat order.

    """

    shapes: Shapes
    blocks: Mapping[str, tuple[tuple[int, int], ...]]

    def read(self, weights: Weights) -> "Sample":
        """Read the planned numbers of those tensors that the weights have.

        Raises:
            TranscriptError: if a file is damaged, or has other tensors than it should.

        """
        wanted = {
            name: blocks
            for name, blocks in self.blocks.items()
            if name in weights and _shape_of(weights, name) == self.shapes[name]
        }
        if isinstance(weights, StoredWeights):
            return Sample(weights.read_blocks(wanted))
        return Sample(
            {
                name: torch.cat([weights[name].reshape(-1)[a:b] for a, b in blocks])
                for name, blocks in wanted.items()
            }
        )

    def size(self, name: str) -> int:
        """Return how many numbers of a tensor are read."""
        return sum(stop - start for start, stop in self.blocks[name])


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The planned numbers of one message.

    Args:
        parts: by tensor, its numbers in the precision in which they are stored.

    """

    parts: Mapping[str, Tensor]

    def flat(self, names: Iterable[str]) -> Float[Tensor, " numbers"]:
        """Return the numbers of these tensors one after the other, in float64."""
        return hardshrink(torch.cat([self.parts[name].double() for name in names]), SMALLEST)

    @property
    def is_finite(self) -> bool:
        """Whether no number is NaN, infinite, or too large to calculate with."""
        return all(are_finite(part) for part in self.parts.values())

    @property
    def precision(self) -> float:
        """The relative distance of neighbouring numbers.

        A model of 16 bits may be stored in 32. Its numbers then have so few binary digits that
        16 bits hold them, and the distance is that of 16 bits.
        """
        epsilons = [max(_precision(part), FLOAT32_SUM_ERROR) for part in self.parts.values()]
        return max(epsilons, default=0.0)


def are_finite(numbers: Tensor) -> bool:
    """Return whether no number is NaN, infinite, or too large to calculate with."""
    return not len(numbers) or float(numbers.abs().max()) <= LARGEST


def plan_sample(shapes: Shapes) -> SamplePlan:
    """Plan a sample: blocks that are spread over each tensor, small tensors as a whole."""
    lengths = {name: _count_numbers(shape) for name, shape in shapes.items()}
    weights = {
        name: n for name, n in lengths.items() if n and not name.endswith(BATCH_NORM_STATISTICS)
    }
    chosen = weights or {name: n for name, n in lengths.items() if n}
    most = MAX_NUMBERS_OF_TENSOR
    while most > BLOCK and sum(min(n, most) for n in chosen.values()) > MAX_NUMBERS_OF_MODEL:
        most //= 2
    return SamplePlan(shapes, {name: _spread_blocks(n, most) for name, n in chosen.items()})


def _count_numbers(shape: Sequence[int]) -> int:
    """Return how many numbers a tensor has; refuse too many before the product grows huge."""
    count = 1
    for axis in shape:
        count *= min(axis, MAX_STATED_NUMBERS + 1)
        if count > MAX_STATED_NUMBERS:
            raise TranscriptError(
                "a message states a tensor that no file can hold: copy the whole transcript "
                "again"
            )
    return count


def thinning_slice(length: int, most: int) -> slice:
    """Return the slice of a sample of `length` numbers that keeps `most` of them or fewer."""
    return slice(None, None, -(-length // most))


def _spread_blocks(length: int, most: int) -> tuple[tuple[int, int], ...]:
    if length <= most:
        return ((0, length),)
    count = most // BLOCK
    last = length - BLOCK
    starts = [round(index * last / max(1, count - 1)) for index in range(count)]
    return tuple((start, start + BLOCK) for start in starts)


def _shape_of(weights: Weights, name: str) -> tuple[int, ...]:
    if isinstance(weights, StoredWeights):
        return tuple(weights.shapes[name])
    return tuple(weights[name].shape)


def _precision(part: Tensor) -> float:
    """Return the relative distance of neighbouring numbers, by the digits that they have."""
    mantissas = torch.frexp(part[:MAX_NUMBERS_OF_REPLY].double()).mantissa
    if not _have_bits(
        mantissas, ROUND_NUMBER_BITS
    ):  # else they are round numbers, as in examples
        for dtype in (torch.bfloat16, torch.float16):
            epsilon = torch.finfo(dtype).eps
            if _have_bits(mantissas, 1 - round(log2(epsilon))):
                return epsilon
    return torch.finfo(part.dtype).eps


def _have_bits(mantissas: Tensor, bits: int) -> bool:
    """Return whether no number has more than so many binary digits."""
    scaled = mantissas * 2**bits
    return torch.equal(scaled, scaled.round())
