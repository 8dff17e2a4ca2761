"""An architecture of which only the names and shapes of its tensors are known."""

import re
from dataclasses import dataclass
from math import prod
from typing import Annotated, ClassVar, final

import torch
from annotated_types import MinLen
from torch import Tensor, nn

from overheard.core.errors import PlanError
from overheard.core.task import Task
from overheard.learning.model import Model

TENSOR = re.compile(r"(.*\S) (\d+(?:x\d+)*|scalar)", re.DOTALL)
"""Matches a name and a shape, such as "fc.weight 10x64"."""

MAX_NUMBERS = 10_000_000_000
"""Most numbers in a tensor."""


@final
@dataclass(frozen=True, slots=True)
class Unknown(Model):
    """The tensors of a recorded model whose code is not at hand; it cannot compute.

    Only attacks that do without the architecture can run: leave "model" out of `knows`.

    Args:
        tensors: name and shape of each parameter, such as "fc.weight 10x64", in the order of
            the recording.

    """

    tensors: Annotated[tuple[str, ...], MinLen(1)]

    name: ClassVar[str] = "unknown"
    source: ClassVar[str] = "the messages of a recording"

    def check_together(self) -> None:
        """Refuse a text that is not a name and a shape."""
        for text in self.tensors:
            if not TENSOR.fullmatch(text) or prod(_shape(text)) > MAX_NUMBERS:
                raise ValueError(
                    f"tensors: give a name and a shape such as 'fc.weight 10x64', got {text!r}"
                )

    def build(self, task: Task) -> nn.Module:
        """Return a module with these parameters, all 0.

        Raises:
            PlanError: if a name is given twice, or cannot be a parameter's name.

        """
        model = _Tensors()
        for text in self.tensors:
            *path, last = text.rpartition(" ")[0].split(".")
            try:
                part: nn.Module = model
                for name in path:
                    if name not in dict(part.named_children()):
                        part.add_module(name, _Tensors())
                    part = part.get_submodule(name)
                part.register_parameter(last, nn.Parameter(torch.zeros(_shape(text))))
            except (KeyError, AttributeError) as error:
                raise PlanError(f"model: {text!r} cannot be a parameter: {error}") from error
        return model


class _Tensors(nn.Module):
    """Parameters without a computation."""

    def forward(self, inputs: Tensor) -> Tensor:
        raise PlanError(
            "model: an unknown model cannot compute: leave 'model' out of knows, or set "
            "training.model to your own class"
        )


def _shape(text: str) -> tuple[int, ...]:
    shape = text.rpartition(" ")[2]
    return () if shape == "scalar" else tuple(map(int, shape.split("x")))
