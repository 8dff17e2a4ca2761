"""Weights that stay on the disk until one of their tensors is asked for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from overheard.archive.spelled import spelled
from overheard.core.errors import TranscriptError

COMPUTED = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})
"""The kinds of numbers that weights are."""

PIECE = 2**24
"""Numbers that are looked at together."""

Shapes = Mapping[str, tuple[int, ...]]
"""The tensors of a model, in its order."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class StoredWeights(Mapping[str, Tensor]):
    """Tensors by name, each read from a safetensors file when it is asked for.

    The file is opened, mapped into memory and closed at every access, and its pages go with
    the tensor: nothing is kept, so a transcript may be larger than memory. Take a tensor once
    where it is used twice.

    Args:
        path: of the safetensors file.
        shapes: what must stand in it.

    """

    path: Path
    shapes: Shapes

    def __getitem__(self, name: str) -> Tensor:
        """Read one tensor.

        Raises:
            TranscriptError: if the file is damaged, holds other tensors than it should, or
                this one is no plain number throughout.

        """
        if name not in self.shapes:
            raise KeyError(name)
        return read_tensors(self.path, (name,), self.shapes)[name]

    def __contains__(self, name: object) -> bool:
        """Whether the model has such a tensor; reads nothing."""
        return name in self.shapes

    def __iter__(self) -> Iterator[str]:
        """Go over the names in the model's order."""
        return iter(self.shapes)

    def __len__(self) -> int:
        """How many tensors there are."""
        return len(self.shapes)


def read_tensors(
    path: Path, names: tuple[str, ...], shapes: Shapes | None = None
) -> dict[str, Tensor]:
    """Map these tensors of a safetensors file into memory, checked, as float32.

    That is what models here compute with. Numbers of 16 bits come out as they are, those of 64
    rounded; the file keeps their own width.

    Args:
        path: of the file.
        names: the tensors to read.
        shapes: all that must stand in the file; None where only the names are agreed.

    Raises:
        TranscriptError: naming file, tensor and mend.

    """
    try:
        with safe_open(path, framework="pt") as file:
            _refuse_names(path, set(file.keys()), set(names if shapes is None else shapes))
            read = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError) as error:
        raise TranscriptError(
            f"{path} is damaged or cut short ({spelled(str(error))}): copy the transcript "
            "anew, whole"
        ) from error
    for name, tensor in read.items():
        called = f"{path}: {spelled(repr(name))}"
        if shapes is not None and tuple(tensor.shape) != shapes[name]:
            raise TranscriptError(
                f"{called} is of shape {tuple(tensor.shape)}, the broadcast's of "
                f"{spelled(str(shapes[name]))}: record updates of the model that was broadcast"
            )
        flaw = flaw_of(tensor)
        if flaw:
            raise TranscriptError(f"{called} {flaw}: leave this message out, or record it anew")
    return {name: tensor.float() for name, tensor in read.items()}


def flaw_of(tensor: Tensor) -> str | None:
    """Why these cannot be weights; None if they can."""
    if not tensor.is_floating_point():
        return f"holds {tensor.dtype}, no floating-point numbers"
    if tensor.dtype not in COMPUTED:
        return f"holds {tensor.dtype}, which nothing computes with: send it as float32"
    # A piece at a time: a mapped tensor may be larger than memory.
    pieces = torch.split(tensor.reshape(-1), PIECE)
    if not all(_is_finite(part.float()) for part in pieces):
        return "holds NaN or infinity, as float32"
    return None


def _is_finite(part: Tensor) -> bool:
    # A sum is finite only if all that it sums is, and takes a fifth of the time.
    return bool(part.sum().isfinite()) or bool(part.isfinite().all())


def stored(weights: Mapping[str, Tensor]) -> bytes:
    """The content of a safetensors file with these tensors; alike for the same tensors.

    Raises:
        ValueError: if any tensor has a flaw.

    """
    for name, tensor in weights.items():
        flaw = flaw_of(tensor)
        if flaw:
            raise ValueError(f"the tensor {name!r} {flaw}: only finite weights can be sent")
    # Cloned, since safetensors takes no tensors that share their memory.
    return save(
        {
            name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
            for name, tensor in weights.items()
        }
    )


def shapes_of(weights: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor, in order."""
    if isinstance(weights, StoredWeights):
        return dict(weights.shapes)
    return {name: tuple(tensor.shape) for name, tensor in weights.items()}


def _refuse_names(path: Path, found: set[str], due: set[str]) -> None:
    if found == due:
        return
    lacks, has = spelled(str(sorted(due - found))), spelled(str(sorted(found - due)))
    raise TranscriptError(
        f"{path} holds other tensors than the broadcast: lacks {lacks}, has {has} besides: "
        "record updates of the model that was broadcast"
    )
