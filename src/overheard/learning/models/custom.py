"""A custom architecture, built by a function or a class of the user."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import nn

from overheard.core.custom_code.failure import describe_failure
from overheard.core.custom_code.reference import REFERENCE, OutsideName, import_reference
from overheard.core.errors import PlanError
from overheard.core.task import OUTPUTS_OF, Task
from overheard.learning.custom_networks.single_output import fit_single_output
from overheard.learning.model import Model

CONTRACT = "it takes a Task, or nothing, and returns a torch module"
"""What a function or class of the user must take and return."""


@final
@dataclass(frozen=True, slots=True)
class Own(Model):
    """A model that your own function or class builds.

    Args:
        reference: "package.module:name" of a function, or of a class of torch modules. It takes
            a `Task`, or nothing, and returns a module with fresh weights and a linear last
            layer, which for two classes may have one output: the logit of the second. Frozen
            parameters must be the same at each call with the same seed of torch. It is
            executed, so name only code that you trust.

    """

    reference: OutsideName

    name: ClassVar[str] = "own"
    source: ClassVar[str] = "yours"

    def check_together(self) -> None:
        """Refuse a text that is not a reference to a function."""
        if not REFERENCE.fullmatch(self.reference):
            raise ValueError(
                f"reference: a custom model is given as 'package.module:function', "
                f"got {self.reference!r}"
            )

    def build(self, task: Task) -> nn.Module:
        """Call the function or the class.

        Raises:
            PlanError: if it cannot be imported, fails, returns no module, or a module that does
                not return one number per output of the task.

        """
        model = self.build_for_any(task)
        _check_outputs(self.reference, model, task)
        return model

    def build_for_any(self, task: Task) -> nn.Module:
        """Call the function or the class, and do not run what it returns.

        Raises:
            PlanError: if it cannot be imported, fails, or returns no module.

        """
        builder = import_reference(self.reference, "model", PlanError)
        if not callable(builder):
            raise PlanError(
                f"model: {self.reference} is a {type(builder).__name__}, not a function or a "
                f"class: {CONTRACT}"
            )
        try:
            model = builder(task) if _takes_task(builder) else builder()
        except PlanError:
            raise
        except Exception as error:
            raise PlanError(
                f"model: {self.reference} failed, {describe_failure(error)}: {CONTRACT}"
            ) from error
        if not isinstance(model, nn.Module):
            raise PlanError(
                f"model: {self.reference} returned a {type(model).__name__}; it must return a "
                "torch module"
            )
        return model


def _takes_task(builder: Callable[..., object]) -> bool:
    """Return whether the first parameter is to be given: it has no default or is a task."""
    try:
        parameters = list(inspect.signature(builder).parameters.values())
    except (TypeError, ValueError):
        return True
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or parameters[0].kind not in positional:
        return False
    first = parameters[0]
    return first.default is inspect.Parameter.empty or first.name == "task"


def _check_outputs(reference: str, model: nn.Module, task: Task) -> None:
    """Refuse a model whose output is not (examples, classes).

    With too few outputs training fails; with too many, claims are about the wrong classes.
    """
    dtype = torch.float32 if task.vocabulary is None else torch.int64
    was_training = model.training
    try:
        with torch.no_grad():
            outputs = model.eval()(torch.zeros(1, *task.shape, dtype=dtype))
    except Exception as error:
        raise PlanError(
            f"model: {reference} fails on an example of shape {task.shape}, "
            f"{describe_failure(error)}: its forward must take (examples, *{task.shape}) of "
            f"{dtype} and return (examples, {task.outputs})"
        ) from error
    model.train(was_training)
    if isinstance(outputs, torch.Tensor) and outputs.shape != (1, task.outputs):
        try:
            if fit_single_output(model, task, outputs):
                return
        except PlanError as error:
            raise PlanError(f"model: {reference}: {error}") from error
    if not isinstance(outputs, torch.Tensor) or outputs.shape != (1, task.outputs):
        given = tuple(outputs.shape) if isinstance(outputs, torch.Tensor) else type(outputs)
        raise PlanError(
            f"model: {reference} returns {given} for one example, but the task has "
            f"{task.outputs} {OUTPUTS_OF[task.kind]}; it must return one number for each, "
            f"(examples, {task.outputs}). For a model of another kind, set the task of the "
            "data: classification, multi_label or regression"
        )
