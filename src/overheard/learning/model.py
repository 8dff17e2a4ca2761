"""The interface of a model architecture."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import nn

from overheard.core.settings import Settings
from overheard.core.task import Task


class Model(Settings, ABC):
    """A description of how to build a network for a task.

    A concrete model is a final frozen dataclass: its fields are its settings. The network ends
    in an `nn.Linear` with `task.outputs` outputs, and has no softmax or sigmoid.
    `learning.sent_tensors` states which of its tensors are sent.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    """Source of the architecture: authors, year, section or table."""

    @abstractmethod
    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights, drawn from torch's global generator.

        Use `initial_weights` for seeded weights.

        Raises:
            PlanError: if the network does not support the task's inputs.

        """
