"""The user's own architecture."""

import re
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar, final

from torch import nn

from overheard.core.errors import PlanError
from overheard.core.task import Task
from overheard.learning.model import Model

REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@final
@dataclass(frozen=True, slots=True)
class Own(Model):
    """What a function of yours builds.

    Args:
        reference: "package.module:function", a function that takes a `Task` and gives a module
            with fresh weights, no buffers, and a linear last layer; it is run, so trust it.

    """

    reference: str

    name: ClassVar[str] = "own"
    source: ClassVar[str] = "yours"

    def __post_init__(self) -> None:
        """Refuse what is not written as a reference to a function."""
        if not REFERENCE.fullmatch(self.reference):
            raise ValueError(
                f"a model of your own is named as 'package.module:function', "
                f"got {self.reference!r}"
            )

    def build(self, task: Task) -> nn.Module:
        """Call the function.

        Raises:
            PlanError: if it cannot be imported, or gives no module.

        """
        place, _, function = self.reference.partition(":")
        try:
            builder = vars(import_module(place))[function]
        except (ImportError, KeyError) as error:
            raise PlanError(
                f"the model {self.reference} cannot be imported ({error}): install its package "
                "or put its folder on PYTHONPATH"
            ) from error
        model = builder(task)
        if not isinstance(model, nn.Module):
            raise PlanError(f"{self.reference} gave a {type(model).__name__}, no torch module")
        return model
