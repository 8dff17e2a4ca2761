"""What a file says of one of its tensors, before it is read."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import final

from torch import Tensor


@final
@dataclass(frozen=True, slots=True)
class TensorHead:
    """A tensor in a file.

    Args:
        shape: its shape, checked against the file by `read` alone.
        kind: the type of its numbers as NumPy names it, such as "float32" or "bfloat16".
        itemsize: bytes of one number.
        read: reads it, in this shape; raises `ValueError` if the file does not have it.

    """

    shape: tuple[int, ...]
    kind: str
    itemsize: int
    read: Callable[[], Tensor]

    @property
    def count(self) -> int:
        """The number of its numbers."""
        return prod(self.shape)


Heads = Mapping[str, TensorHead]
"""The tensors of a file by name, in its order."""

OpenHeads = Callable[[Path], AbstractContextManager[Heads]]
"""Opens a file; its tensors can be loaded until it is closed. Raises `ValueError` with what is
wrong and what to do, or one of `ZIP_FAILURES`."""
