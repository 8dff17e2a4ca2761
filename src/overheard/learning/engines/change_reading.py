"""The changes of stacked clients, copied from a GPU to the CPU in few transfers."""

from collections.abc import Sequence
from threading import Lock
from typing import final

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

TRANSFER_BYTES = 2**24
"""Largest transfer of several clients. While one arrives, the last one is divided."""

_locked = list[Tensor]()
"""Two parts of locked memory, kept as locking takes longer than filling it."""

_lock = Lock()


@final
class StackedChanges:
    """What training has changed, on the device: start weights are subtracted, and kept no more.

    A GPU copies at full speed to locked memory of the CPU alone, and a small tensor takes as
    long as a megabyte. So the changes of several clients arrive as one. They are copied beside
    what the GPU computes meanwhile, such as the next stack.
    """

    def __init__(
        self,
        stack: Sequence[Shaped[Tensor, "clients ..."]],
        starts: Sequence[Sequence[Tensor]],
        losses: Float[Tensor, " clients"],
    ) -> None:
        """Subtract the start weights of each client from the stacked weights.

        Args:
            stack: the trained weights.
            starts: the start weights of each client, on the same device.
            losses: the loss of each client.

        """
        self._losses = losses.clone()
        self._shapes = [one.shape[1:] for one in stack]
        self._sizes = [shape.numel() for shape in self._shapes]
        self._by_client = list[list[Tensor]]()
        self._ready: torch.cuda.Event | None = None
        if stack[0].device.type == "cpu":
            self._by_client = [
                list(torch._foreach_sub([one[client] for one in stack], list(start)))
                for client, start in enumerate(starts)
            ]
            return
        is_one_start = all(start is starts[0] for start in starts)
        begins = starts[0] if is_one_start else map(torch.stack, zip(*starts, strict=True))
        self._flat = stack[0].new_empty(len(starts), sum(self._sizes))
        parts = torch.split(self._flat, self._sizes, 1)
        for part, one, begin in zip(parts, stack, begins, strict=True):
            torch.sub(one, begin, out=part.view_as(one))
        if stack[0].device.type == "cuda":
            self._ready = _event()

    def read(self) -> tuple[list[list[Tensor]], list[float]]:
        """Return the change of each tensor by client, on the CPU, and the losses.

        Each tensor has memory of its own, so that keeping one keeps no others.
        """
        if self._by_client:
            return self._by_client, self._losses.tolist()
        if self._ready is None:
            return self._divide(self._flat.cpu()), self._losses.tolist()
        stream = torch.cuda.Stream(self._flat.device)  # type: ignore[no-untyped-call]
        with torch.cuda.stream(stream):
            self._ready.wait()
            at_once = TRANSFER_BYTES // (self._flat[0].numel() * self._flat.element_size())
            changes = self._read_several(at_once) if at_once else self._read_each()
            return changes, self._losses.tolist()

    def _read_each(self) -> list[list[Tensor]]:
        """Read one tensor after the other, which are large."""
        return [
            [
                part.view(shape).cpu()
                for part, shape in zip(torch.split(row, self._sizes), self._shapes, strict=True)
            ]
            for row in self._flat
        ]

    def _read_several(self, at_once: int) -> list[list[Tensor]]:
        """Read the changes of so many clients with each transfer."""
        changes = list[list[Tensor]]()
        with _lock:
            if not _locked:
                for _ in range(2):
                    _locked.append(
                        torch.empty(TRANSFER_BYTES, dtype=torch.uint8, pin_memory=True)
                    )
            arriving: tuple[Tensor, torch.cuda.Event] | None = None
            for turn, rows in enumerate([*torch.split(self._flat, at_once), None]):
                following = None if rows is None else _send(rows, _locked[turn % 2])
                if arriving is not None:
                    target, arrived = arriving
                    arrived.synchronize()
                    changes += self._divide(target)
                arriving = following
        return changes

    def _divide(self, flat: Float[Tensor, "clients numbers"]) -> list[list[Tensor]]:
        """Copy the change of each tensor out."""
        return [
            [
                part.view(shape).clone()
                for part, shape in zip(torch.split(row, self._sizes), self._shapes, strict=True)
            ]
            for row in flat
        ]


def _send(rows: Tensor, memory: Tensor) -> tuple[Tensor, torch.cuda.Event]:
    """Begin to copy to locked memory; return the copy, and when it is there."""
    target = memory.view(rows.dtype)[: rows.numel()].view_as(rows)
    target.copy_(rows, non_blocking=True)
    return target, _event()


def _event() -> torch.cuda.Event:
    """Return an event that is reached once the GPU has done what it was told so far."""
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record()
    return event
