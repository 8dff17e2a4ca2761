"""Memory for intermediate results that training overwrites in every step."""

from collections.abc import Hashable
from math import prod
from typing import final

import torch
from torch import Tensor


@final
class ReusedMemory:
    """Tensors that are allocated once, as new memory for each step costs time."""

    def __init__(self) -> None:
        self._buffers: dict[Hashable, Tensor] = {}

    def take(self, name: Hashable, like: Tensor, *shape: int) -> Tensor:
        """Return a tensor of this shape with any numbers; those of one name share memory."""
        size = prod(shape)
        buffer = self._buffers.get(name)
        if buffer is None or len(buffer) < size:
            buffer = torch.empty(size, dtype=like.dtype, device=like.device)
            self._buffers[name] = buffer
        return buffer[:size].view(shape)
