"""The changes of stacked clients, copied from a GPU to the CPU in few transfers."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

TRANSFER_BYTES = 2**26
"""Largest transfer of several clients. While one arrives, the last one is divided."""


@final
class ChangeReader:
    """Reads what training has changed, in memory that is allocated once.

    A GPU copies to locked memory of the CPU only at full speed, and a small tensor takes as
    long as a megabyte. So the changes of several clients arrive as one tensor each.
    """

    def __init__(self) -> None:
        self._locked = list[Tensor]()

    def read(
        self, stack: Sequence[Shaped[Tensor, "clients ..."]], starts: Sequence[Sequence[Tensor]]
    ) -> list[list[Tensor]]:
        """Return the stacked weights minus the start weights, by client, on the CPU.

        Each tensor has memory of its own, so that keeping one keeps no others.
        """
        weight = stack[0]
        if weight.device.type == "cpu":
            return [
                list(torch._foreach_sub([one[client] for one in stack], list(start)))
                for client, start in enumerate(starts)
            ]
        numbers = sum(one[0].numel() for one in stack)
        at_once = TRANSFER_BYTES // (numbers * weight.element_size())
        if not at_once:
            return [
                [(one[client] - begin).cpu() for one, begin in zip(stack, start, strict=True)]
                for client, start in enumerate(starts)
            ]
        changes = list[list[Tensor]]()
        arriving: _Transfer | None = None
        for turn, begin in enumerate(range(0, len(starts), at_once)):
            part = slice(begin, begin + at_once)
            following = self._send(turn, [one[part] for one in stack], starts[part])
            if arriving is not None:
                changes += arriving.divide(stack)
            arriving = following
        if arriving is not None:
            changes += arriving.divide(stack)
        return changes

    def _send(
        self, turn: int, stack: Sequence[Tensor], starts: Sequence[Sequence[Tensor]]
    ) -> "_Transfer":
        """Begin to copy the changes of these clients."""
        is_one_start = all(start is starts[0] for start in starts)
        begins = starts[0] if is_one_start else map(torch.stack, zip(*starts, strict=True))
        flat = torch.cat(
            [
                (one - begin).reshape(len(one), -1)
                for one, begin in zip(stack, begins, strict=True)
            ],
            1,
        )
        if flat.device.type != "cuda":
            return _Transfer(flat.cpu(), None)
        if len(self._locked) < 2 or self._locked[0].numel() < flat.numel():
            self._locked = [
                torch.empty(flat.numel(), dtype=flat.dtype, pin_memory=True) for _ in range(2)
            ]
        target = self._locked[turn % 2][: flat.numel()].view_as(flat)
        target.copy_(flat, non_blocking=True)
        arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
        arrived.record()
        return _Transfer(target, arrived)


@final
class _Transfer:
    """Changes that are being copied to the CPU.

    Args:
        changes: the memory that they are copied to.
        arrived: when they are there; None = now.

    """

    def __init__(
        self, changes: Float[Tensor, "clients numbers"], arrived: torch.cuda.Event | None
    ) -> None:
        self._changes, self._arrived = changes, arrived

    def divide(self, stack: Sequence[Tensor]) -> list[list[Tensor]]:
        """Return the change of each tensor of the stack, by client."""
        if self._arrived is not None:
            self._arrived.synchronize()
        sizes = [one[0].numel() for one in stack]
        return [
            [
                part.view(one.shape[1:]).clone()
                for part, one in zip(row.split(sizes), stack, strict=True)
            ]
            for row in self._changes
        ]
