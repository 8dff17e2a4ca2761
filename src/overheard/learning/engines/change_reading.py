"""The changes of stacked clients, copied from a GPU to the CPU in few transfers."""

from collections.abc import Sequence
from threading import Lock

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

TRANSFER_BYTES = 2**24
"""Largest transfer of several clients."""

_locked = list[Tensor]()
"""Memory that a GPU copies to without the help of the CPU; kept, as locking it takes time."""

_lock = Lock()


def read_changes(
    stack: Sequence[Shaped[Tensor, "clients ..."]], starts: Sequence[Sequence[Tensor]]
) -> list[list[Tensor]]:
    """Return the stacked weights minus the start weights, by client, on the CPU.

    Each tensor has memory of its own, so that keeping one keeps no others.

    Args:
        stack: the trained weights.
        starts: the start weights of each client, on the same device.

    """
    if stack[0].device.type == "cpu":
        return [
            list(torch._foreach_sub([one[client] for one in stack], list(start)))
            for client, start in enumerate(starts)
        ]
    bytes_each = sum(one[0].numel() * one.element_size() for one in stack)
    at_once = TRANSFER_BYTES // bytes_each
    changes = list[list[Tensor]]()
    with _lock:
        for begin in range(0, len(starts), max(1, at_once)):
            part = slice(begin, begin + max(1, at_once))
            changes += _read([one[part] for one in stack], starts[part], is_one=bool(at_once))
    return changes


def _read(
    stack: Sequence[Tensor], starts: Sequence[Sequence[Tensor]], *, is_one: bool
) -> list[list[Tensor]]:
    """Read the changes of some clients, as one transfer or as one for each tensor."""
    is_one_start = all(start is starts[0] for start in starts)
    begins = starts[0] if is_one_start else map(torch.stack, zip(*starts, strict=True))
    changes = [one - begin for one, begin in zip(stack, begins, strict=True)]
    if not is_one:
        return [[change[client].cpu() for change in changes] for client in range(len(starts))]
    flat = _to_cpu(torch.cat([one.reshape(len(one), -1) for one in changes], 1))
    sizes = [one[0].numel() for one in changes]
    return [
        [
            part.view(one.shape[1:]).clone()
            for part, one in zip(torch.split(row, sizes), changes, strict=True)
        ]
        for row in flat
    ]


def _to_cpu(flat: Float[Tensor, "clients numbers"]) -> Float[Tensor, "clients numbers"]:
    """Copy numbers to the CPU; the next call overwrites those of a GPU."""
    if flat.device.type != "cuda":
        return flat.cpu()
    if not _locked:
        _locked.append(torch.empty(TRANSFER_BYTES, dtype=torch.uint8, pin_memory=True))
    return _locked[0].view(flat.dtype)[: flat.numel()].view_as(flat).copy_(flat)
