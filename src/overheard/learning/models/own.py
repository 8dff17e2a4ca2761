"""A custom architecture, built by a function of the user."""

import re
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar, final

import torch
from torch import nn

from overheard.core.errors import PlanError
from overheard.core.task import Task
from overheard.learning.model import Model

REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@final
@dataclass(frozen=True, slots=True)
class Own(Model):
    """A model that your own function builds.

    Args:
        reference: "package.module:function"; the function takes a `Task` and returns a module
            with fresh weights, no buffers, and a linear last layer. It is executed, so name
            only code that you trust.

    """

    reference: str

    name: ClassVar[str] = "own"
    source: ClassVar[str] = "yours"

    def __post_init__(self) -> None:
        """Refuse a text that is not a reference to a function."""
        if not REFERENCE.fullmatch(self.reference):
            raise ValueError(
                f"reference: a custom model is given as 'package.module:function', "
                f"got {self.reference!r}"
            )

    def build(self, task: Task) -> nn.Module:
        """Call the function.

        Raises:
            PlanError: if it cannot be imported, returns no module, or a module that does not
                return one number per class.

        """
        module, _, function = self.reference.partition(":")
        try:
            builder = vars(import_module(module))[function]
        except (ImportError, KeyError) as error:
            raise PlanError(
                f"model: {self.reference} cannot be imported ({error}); install its package or "
                "put its folder on PYTHONPATH"
            ) from error
        model = builder(task)
        if not isinstance(model, nn.Module):
            raise PlanError(
                f"model: {self.reference} returned a {type(model).__name__}; it must return a "
                "torch module"
            )
        _check_outputs(self.reference, model, task)
        return model


def _check_outputs(reference: str, model: nn.Module, task: Task) -> None:
    """Refuse a model whose output is not (examples, classes).

    With too few outputs training fails; with too many, claims are about the wrong classes.
    """
    dtype = torch.float32 if task.vocabulary is None else torch.int64
    was_training = model.training
    with torch.no_grad():
        outputs = model.eval()(torch.zeros(1, *task.shape, dtype=dtype))
    model.train(was_training)
    if not isinstance(outputs, torch.Tensor) or outputs.shape != (1, task.classes):
        given = tuple(outputs.shape) if isinstance(outputs, torch.Tensor) else type(outputs)
        raise PlanError(
            f"model: {reference} returns {given} for one example, but the task has "
            f"{task.classes} classes; it must return one number per class, (examples, classes)"
        )
