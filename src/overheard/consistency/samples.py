"""Samples of the tensors of messages: the same numbers of every message of a recording."""

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

MOST_OF_A_TENSOR = 2**16
"""Most numbers of one tensor."""

MOST_STATED = 2**62
"""Most numbers that a message may state of a tensor."""

MOST_IN_ALL = 2**16
"""Most numbers of a model: 50 rounds of 10 clients then take some 1.5 seconds."""

LARGEST = torch.finfo(torch.float32).max
"""Largest number of a model; the squares of squares of larger ones are infinite."""

SMALLEST = 2.0**-149
"""Smallest number of 32 bits. The squares of squares of smaller ones are zero, so that these
are taken for zero."""

SUM_IN_SINGLE = 2**-21
"""Relative error of a sum that a server computes in 32 bits: four distances of numbers."""

FEW_BITS = 5
"""Binary digits of round numbers, which do not tell how numbers were rounded."""

BLOCK = 1024
"""Numbers in a row: a page of a mapped file holds as many of 32 bits."""

MOST_OF_A_CLIENT = 2**12
"""Most numbers of the smaller sample in which single replies are compared."""

RUNNING = (
    "running_mean",
    "running_var",
    "moving_mean",
    "moving_variance",
    "num_batches_tracked",
)
"""How names of statistics of batch norms end. Servers often treat them otherwise than weights:
they leave them out, or give them no momentum."""


@final
@dataclass(frozen=True, slots=True)
class SamplePlan:
    """Which numbers of each tensor are read.

    Args:
        shapes: the shapes of all tensors of the model.
        blocks: by tensor, the first and last + 1 places of its parts, in its flat order.

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
            if name in weights and _shape(weights, name) == self.shapes[name]
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
        """The relative distance of neighbouring numbers: as stored, or as they were rounded.

        A model of 16 bits may be stored in 32: then all its numbers survive the rounding.
        """
        epsilons = [max(_precision(part), SUM_IN_SINGLE) for part in self.parts.values()]
        return max(epsilons, default=0.0)


def are_finite(numbers: Tensor) -> bool:
    """Return whether no number is NaN, infinite, or too large to calculate with."""
    return not len(numbers) or float(numbers.abs().max()) <= LARGEST


def plan_sample(shapes: Shapes) -> SamplePlan:
    """Plan a sample: blocks that are spread over each tensor, small tensors as a whole."""
    lengths = {name: _count_numbers(shape) for name, shape in shapes.items()}
    weights = {name: n for name, n in lengths.items() if n and not name.endswith(RUNNING)}
    chosen = weights or {name: n for name, n in lengths.items() if n}
    most = MOST_OF_A_TENSOR
    while most > BLOCK and sum(min(n, most) for n in chosen.values()) > MOST_IN_ALL:
        most //= 2
    return SamplePlan(shapes, {name: _spread(n, most) for name, n in chosen.items()})


def _count_numbers(shape: Sequence[int]) -> int:
    """Return the numbers of a tensor; refuse more before they become too large to multiply."""
    count = 1
    for axis in shape:
        count *= min(axis, MOST_STATED + 1)
        if count > MOST_STATED:
            raise TranscriptError(
                "a message states a tensor that no file can hold: copy the whole transcript "
                "again"
            )
    return count


def thin(length: int, most: int) -> slice:
    """Return which places of a sample are in a smaller one."""
    return slice(None, None, -(-length // most))


def _spread(length: int, most: int) -> tuple[tuple[int, int], ...]:
    if length <= most:
        return ((0, length),)
    count = most // BLOCK
    last = length - BLOCK
    starts = [round(index * last / max(1, count - 1)) for index in range(count)]
    return tuple((start, start + BLOCK) for start in starts)


def _shape(weights: Weights, name: str) -> tuple[int, ...]:
    if isinstance(weights, StoredWeights):
        return tuple(weights.shapes[name])
    return tuple(weights[name].shape)


def _precision(part: Tensor) -> float:
    """Return the relative distance of neighbouring numbers, by the digits that they have."""
    mantissas = torch.frexp(part[:MOST_OF_A_CLIENT].double()).mantissa
    if not _have_bits(mantissas, FEW_BITS):  # otherwise they are round numbers of an example
        for dtype in (torch.bfloat16, torch.float16):
            epsilon = torch.finfo(dtype).eps
            if _have_bits(mantissas, 1 - round(log2(epsilon))):
                return epsilon
    return torch.finfo(part.dtype).eps


def _have_bits(mantissas: Tensor, bits: int) -> bool:
    """Return whether no number has more than so many binary digits."""
    scaled = mantissas * 2**bits
    return torch.equal(scaled, scaled.round())
