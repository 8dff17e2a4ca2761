"""One linear layer: logistic regression, with an output per class or one for two classes."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from torch import nn

from overheard.core.errors import PlanError
from overheard.core.task import Task
from overheard.learning.custom_networks.single_output import fit_single_output
from overheard.learning.input_shapes import input_size
from overheard.learning.model import Model


@final
@dataclass(frozen=True, slots=True)
class Logistic(Model):
    """Logistic regression on the flattened input; its loss is convex."""

    name: ClassVar[str] = "logistic"
    source: ClassVar[str] = "Cox 1958"

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights."""
        return nn.Sequential(nn.Flatten(), nn.Linear(input_size(task, self.name), task.outputs))


@final
@dataclass(frozen=True, slots=True)
class BinaryLogistic(Model):
    """Logistic regression of two classes with one output: the logit of the second.

    So are binary models of scikit-learn, whose `coef_` has one row.
    """

    name: ClassVar[str] = "binary_logistic"
    source: ClassVar[str] = "Cox 1958"

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights.

        Raises:
            PlanError: if the task has not two classes.

        """
        inputs = input_size(task, self.name)
        if not task.has_classes or task.classes != 2:
            raise PlanError(
                f"model: {self.name} needs two classes, got a {task.kind} with {task.outputs} "
                "outputs: use logistic"
            )
        network = nn.Sequential(nn.Flatten(), nn.Linear(inputs, 1))
        fit_single_output(network, task, torch.zeros(1, 1))
        return network
