"""One linear layer: multinomial logistic regression."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import nn

from overheard.core.task import Task
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
