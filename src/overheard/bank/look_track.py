"""Follows what the label shares leave unexplained of a target's representations."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.learning.standard import Standard, standard_of

MOST_DIRECTIONS = 8
"""Of what is followed. A change of look shows along few; each more adds noise to the sum."""


@dataclass(frozen=True, slots=True)
class LookTrack:
    """What is left of a client's numbers in each round, along the directions that vary most.

    What two clients of the same label shares differ by: the look of their examples, and chance.
    The part that shares explain is learned by least squares on either half of the virtual
    clients, and taken off those of the other.

    Args:
        of_virtual: of virtual clients, by the regression of the half in which each is not.
        scales: of the numbers, one a round.
        maps: by half, from shares to numbers, round by round.
        directions: principal directions of what is left.

    """

    of_virtual: Float[Tensor, "virtual rounds directions"]
    scales: tuple[Standard, ...]
    maps: Float[Tensor, "halves rounds inputs numbers"]
    directions: Float[Tensor, "numbers directions"]

    def read(
        self,
        numbers: Float[Tensor, "rounds numbers"],
        shares: Float[Tensor, "rounds classes"],
    ) -> Float[Tensor, "rounds directions"]:
        """What a target's shares, as they were read, leave unexplained; mean of the halves."""
        known = torch.stack(
            [scale.of(row) for scale, row in zip(self.scales, numbers.double(), strict=True)]
        )
        told = torch.einsum("ri,hrik->rk", _with_one(shares), self.maps) / len(self.maps)
        return (known - told) @ self.directions


def look_track(
    numbers: Float[Tensor, "virtual rounds numbers"],
    shares: Float[Tensor, "virtual classes"],
    read_shares: Float[Tensor, "virtual rounds classes"],
    halves: Int[Tensor, " virtual"],
) -> LookTrack:
    """Learn what shares explain, and along which directions the rest varies.

    Args:
        numbers: as a probe read them.
        shares: what each virtual client holds: from these is learned.
        read_shares: what was read of each: these are taken off, as of a target whose shares
            nobody tells.
        halves: 0 or 1.

    """
    scales = tuple(standard_of(numbers[:, place].double()) for place in range(numbers.shape[1]))
    known = torch.stack(
        [scale.of(numbers[:, place].double()) for place, scale in enumerate(scales)], 1
    )
    rest, maps = torch.zeros_like(known), []
    for half in (0, 1):
        own, others = halves == half, halves != half
        inputs = _with_one(shares[own].double())
        # Shares sum to 1: with the constant there is one column too many, and the pseudoinverse
        # takes the shortest of the solutions.
        way = torch.einsum("iv,vrk->rik", torch.linalg.pinv(inputs), known[own])
        told = torch.einsum("vri,rik->vrk", _with_one(read_shares[others]), way)
        rest[others] = known[others] - told
        maps.append(way)
    flat = rest.flatten(0, 1)
    _, _, ways = torch.linalg.svd(flat, full_matrices=False)
    directions = ways[:MOST_DIRECTIONS].T
    return LookTrack(rest @ directions, scales, torch.stack(maps), directions)


def _with_one(shares: Float[Tensor, "*many classes"]) -> Float[Tensor, "*many inputs"]:
    return torch.cat((shares.double(), shares.new_ones(*shares.shape[:-1], 1).double()), -1)
