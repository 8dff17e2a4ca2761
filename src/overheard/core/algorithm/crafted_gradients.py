"""The gradients of canaries that are crafted: each has coordinates of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.messages import Weights
from overheard.core.seeds import Seed

SIGNS = Seed(0).child("crafted gradients")
"""The signs of the entries are public, and the same in all runs. They are random, so that what
gradients have in common hardly points along a crafted one."""

PLAIN_NORM = 100.0
"""The norm of a crafted gradient where none is clipped: nothing bounds a record's gradient
there. A clip of the update bounds what it does."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class CraftedRows:
    """Which examples of a client are canaries with crafted gradients.

    Args:
        canaries: of each example, the number of its canary; -1 = it is none.
        count: number of canaries of the run, inserted or not.

    """

    canaries: Int[Tensor, " examples"]
    count: int

    def sum_of(
        self, rows: Int[Tensor, " batch"], like: Weights
    ) -> tuple[Int[Tensor, " others"], Mapping[str, Tensor] | None]:
        """Return the rows of a batch that are no canaries, and the gradients of the others.

        Args:
            rows: of the client's examples.
            like: gives names and shapes of the parameters.

        """
        numbers = self.canaries[rows.cpu()]
        found = numbers[numbers >= 0].tolist()
        others = rows[(numbers < 0).to(rows.device)]
        return others, sum_of_crafted(found, self.count, like) if found else None


def sum_of_crafted(canaries: Sequence[int], count: int, like: Weights) -> Mapping[str, Tensor]:
    """Return the sum of the gradients of these canaries, each of norm 1.

    The parameters, in the order of their names, are cut into one block for each canary, with
    equal magnitudes in all entries of a block.

    Raises:
        PlanError: if there are more canaries than parameters.

    """
    names = sorted(like)
    sizes = [like[name].numel() for name in names]
    size = block_size(count, sum(sizes))
    values = torch.zeros(sum(sizes))
    for number in canaries:
        values[number * size : (number + 1) * size] += size**-0.5
    parts = torch.split(values * _signs(sum(sizes)), sizes)
    return {
        name: part.reshape(like[name].shape).to(like[name])
        for name, part in zip(names, parts, strict=True)
    }


def along_crafted(
    update: Float[Tensor, " parameters"], count: int
) -> Float[Tensor, " canaries"]:
    """Return the inner product of an update with the gradient of each canary.

    Raises:
        PlanError: if there are more canaries than parameters.

    """
    size = block_size(count, len(update))
    signed = (update * _signs(len(update)))[: count * size].reshape(count, size)
    return signed.sum(1).mul(size**-0.5)


def block_size(count: int, parameters: int) -> int:
    """Return the number of coordinates of each canary.

    Raises:
        PlanError: if there are more canaries than parameters.

    """
    if parameters < count:
        raise PlanError(
            f"candidates: {count} canaries with crafted gradients need as many coordinates, "
            f"but the model has {parameters}: lower their number, or choose a larger model"
        )
    return parameters // count


def _signs(parameters: int) -> Float[Tensor, " parameters"]:
    return torch.randn(parameters, generator=SIGNS.generator()).sign()
