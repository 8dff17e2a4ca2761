"""What the files of clients hold, and what must be known to compute their updates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from annotated_types import Gt
from pydantic import ConfigDict
from torch import Tensor

from overheard.core.messages import Weights
from overheard.core.settings import Settings
from overheard.recorders.replies.differences import ReplyKind

SavedModel = Literal["before", "after"]
"""Whether the global model in a round's folder was saved before or after its aggregation."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import that `about.toml` may state instead; None = as it states.

    Args:
        kind: content of clients' files; global models are always weights.
        rate: the learning rate of the server that multiplies gradients.
        saved: whether the global model in a round's folder was saved before or after the
            aggregation.

    """

    kind: ReplyKind | None = None
    rate: float | None = None
    saved: SavedModel | None = None


AS_STATED = ImportOptions()


CodeScale = Annotated[float, Gt(0)]
"""By what a whole-number code is multiplied."""


@dataclass(frozen=True, slots=True)
class WeightCodes(Settings):
    """How whole-number codes of numbers are decoded: scale times (code minus zero point).

    Args:
        scale: for all tensors, or by name of a tensor; others are no codes.
        zero_point: for all tensors, or by name of a tensor; 0 for others.

    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False
    )

    scale: CodeScale | Mapping[str, CodeScale]
    zero_point: float | Mapping[str, float] = 0.0

    def names(self) -> tuple[str, ...]:
        """Return the names of the tensors that scale or zero point name."""
        tables = (one for one in (self.scale, self.zero_point) if isinstance(one, Mapping))
        return tuple(name for table in tables for name in table)

    def decode(self, weights: Weights) -> dict[str, Tensor]:
        """Return the numbers of all codes, as float32.

        Raises:
            ValueError: if a tensor is not of whole numbers, or has whole numbers of an
                unstated scale.

        """
        return {name: self._decode_tensor(name, tensor) for name, tensor in weights.items()}

    def _decode_tensor(self, name: str, tensor: Tensor) -> Tensor:
        scale = self.scale.get(name) if isinstance(self.scale, Mapping) else self.scale
        if scale is None:
            if not tensor.is_floating_point():
                raise ValueError(f"{name!r} holds whole-number codes, but codes.scale has none")
            return tensor
        zero = self.zero_point
        zero_point = zero.get(name, 0.0) if isinstance(zero, Mapping) else zero
        codes = tensor.double()
        if not torch.equal(codes, codes.round()):
            raise ValueError(f"{name!r} holds no whole-number codes, but codes.scale has it")
        return ((codes - zero_point) * scale).float()
