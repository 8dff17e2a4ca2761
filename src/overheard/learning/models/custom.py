"""A custom architecture, built by a function or a class of the user."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, final

import torch
from torch import nn

from overheard.core.custom_code.builder_arguments import Argument, bind_arguments
from overheard.core.custom_code.failure import describe_failure
from overheard.core.custom_code.reference import REFERENCE, OutsideName, import_reference
from overheard.core.errors import PlanError
from overheard.core.settings import NotNegative
from overheard.core.task import OUTPUTS_OF, Task
from overheard.learning.custom_networks.frozen_base import load_frozen
from overheard.learning.custom_networks.logits_network import LogitsNetwork, as_logits_network
from overheard.learning.custom_networks.single_output import fit_single_output
from overheard.learning.model import Model

CONTRACT = "it takes a Task, nothing, or the arguments of the plan, and returns a torch module"
"""What a function or class of the user must take and return."""


@final
@dataclass(frozen=True, slots=True)
class Own(Model):
    """A model that your own function or class builds.

    A network of Hugging Face or PEFT is taken as it is: it gets tokens and the mask of those
    that are no padding, and its logits are read (`learning.custom_networks.logits_network`).

    Args:
        reference: "package.module:name" of a function, or of a class of torch modules. It takes
            a `Task`, or nothing, and returns a module with fresh weights and a linear last
            layer, which for two classes may have one output: the logit of the second. Frozen
            parameters must be the same at each call with the same seed of torch. It is
            executed, so name only code that you trust.
        arguments: names and values, such as [["rank", 8]]. A parameter of that name gets the
            value, with "_" for "-" and "."; one that is called `run_config`, `config` or `cfg`
            gets all of them, as a mapping. Omitted: none.
        base: a file in the format safetensors with the frozen tensors, which the run did not
            send. Omitted: they are as the function returns them.
        padding: the token after the end of a text, which the attention mask leaves out.
            Omitted: the `pad_token_id` of the network's configuration, or else 0.

    """

    reference: OutsideName
    arguments: tuple[Argument, ...] | None = None
    base: OutsideName | None = None
    padding: NotNegative | None = None

    name: ClassVar[str] = "own"
    source: ClassVar[str] = "yours"

    def check_together(self) -> None:
        """Refuse a text that is not a reference to a function."""
        if not REFERENCE.fullmatch(self.reference):
            raise ValueError(
                f"reference: a custom model is given as 'package.module:function', "
                f"got {self.reference!r}"
            )

    def __repr__(self) -> str:
        """Give the reference, and the other settings that are set."""
        named = [one.name for one in fields(self) if getattr(self, one.name) is not None]
        return f"Own({', '.join(f'{name}={getattr(self, name)!r}' for name in named)})"

    def build(self, task: Task) -> nn.Module:
        """Call the function or the class, and let its network take one tensor.

        Raises:
            PlanError: if it cannot be imported, fails, returns no module, or a module that does
                not return one number per output of the task.

        """
        network = as_logits_network(self.build_for_any(task), task, self.padding)
        return _checked_network(self.reference, network, task)

    def build_for_any(self, task: Task | None) -> nn.Module:
        """Call the function or the class, and do not run what it returns.

        Args:
            task: the task for which it builds; None = not known, and a function that needs one
                is refused.

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
            arguments = bind_arguments(builder, task, self.arguments or ())
            model = builder(*arguments.args, **arguments.kwargs)
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
        if self.base:
            load_frozen(model, Path(self.base))
        return model


def _checked_network(reference: str, model: nn.Module, task: Task) -> nn.Module:
    """Return the network with logits as its outputs; refuse another shape of them.

    With too few outputs training fails; with too many, claims are about the wrong classes.
    """
    dtype = torch.float32 if task.vocabulary is None else torch.int64
    was_training = model.training
    try:
        with torch.no_grad():
            inputs = torch.zeros(1, *task.shape, dtype=dtype)
            outputs = model.eval()(inputs)
            if not isinstance(outputs, torch.Tensor):
                model = LogitsNetwork(model, 0, is_language_model=False)
                outputs = model(inputs)
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
                return model
        except PlanError as error:
            raise PlanError(f"model: {reference}: {error}") from error
    if not isinstance(outputs, torch.Tensor) or outputs.shape != (1, task.outputs):
        given = tuple(outputs.shape) if isinstance(outputs, torch.Tensor) else type(outputs)
        raise PlanError(
            f"model: {reference} returns {given} for one example, but the task has "
            f"{task.outputs} {OUTPUTS_OF[task.kind]}; it must return one number for each, "
            f"(examples, {task.outputs}). For a model of another kind, set the task of the "
            "data: classification, multi_label, regression or language_modeling"
        )
    return model
