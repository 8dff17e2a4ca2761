"""Weights that stay on disk until one of their tensors is accessed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, final

from overheard.core.errors import TranscriptError
from overheard.core.messages import SizedWeights

if TYPE_CHECKING:  # so that `overheard show` need not load torch
    import torch

Shapes = Mapping[str, tuple[int, ...]]
"""The shapes of a model's tensors by name, in the model's order."""

MAX_BYTES_PER_NUMBER = 8
"""Most bytes of one number."""


@final
@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class StoredWeights(SizedWeights):
    """Tensors by name, each read from a safetensors file when it is accessed.

    Each access opens the file, maps it into memory and closes it; its memory is freed with the
    tensor. A transcript may be larger than memory: access a tensor once if you use it twice.
    Only the last 256 small files stay in memory, until they change on disk.

    Args:
        path: the path of the safetensors file.
        shapes: the shapes of the tensors that it must have.
        sha256: the digest that its message states, with which the file is compared before it is
            read; None = not known.

    """

    path: Path
    shapes: Shapes
    sha256: str | None = None

    def __getitem__(self, name: str) -> "torch.Tensor":
        """Read one tensor.

        Raises:
            TranscriptError: if the file is damaged, or has another digest or other tensors than
                it should, or this tensor has invalid values.

        """
        if name not in self.shapes:
            raise KeyError(name)
        from overheard.archive.tensor_files import read_stored_tensor  # it loads torch

        return read_stored_tensor(self.path, self.shapes, name, self.sha256)

    def read_blocks(
        self, blocks: Mapping[str, Sequence[tuple[int, int]]]
    ) -> "dict[str, torch.Tensor]":
        """Read parts of tensors, in the precision of the file; see `read_tensor_blocks`."""
        from overheard.archive.tensor_files import read_tensor_blocks  # it loads torch

        return read_tensor_blocks(self.path, self.shapes, blocks, self.sha256)

    def __contains__(self, name: object) -> bool:
        """Return whether the model has such a tensor; reads nothing."""
        return name in self.shapes

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names in the model's order."""
        return iter(self.shapes)

    def __len__(self) -> int:
        """Return the number of tensors."""
        return len(self.shapes)

    def count_bytes(self) -> int:
        """Return the bytes of the tensors in the file; reads its header only.

        The first eight bytes give the length of the header, and the tensors follow without
        gaps.

        Raises:
            TranscriptError: if the header is damaged.

        """
        numbers = sum(map(prod, self.shapes.values()))
        try:
            with self.path.open("rb") as file:
                head = 8 + int.from_bytes(file.read(8), "little")
            size = self.path.stat().st_size - head
        except OSError as error:
            raise TranscriptError(
                f"{self.path} cannot be read ({error}): copy it again"
            ) from error
        if not numbers <= size <= MAX_BYTES_PER_NUMBER * numbers:
            raise TranscriptError(
                f"{self.path} is too small or too large for the {numbers} numbers that it "
                "should hold: copy the whole transcript again"
            )
        return size


def tensor_shapes(weights: Mapping[str, "torch.Tensor"]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor, in order."""
    if isinstance(weights, StoredWeights):
        return dict(weights.shapes)
    return {name: tuple(tensor.shape) for name, tensor in weights.items()}
