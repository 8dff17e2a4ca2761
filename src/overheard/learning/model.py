"""The contract of an architecture."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import nn

from overheard.core.task import Task


class Model(ABC):
    """Says how to build a network for a task.

    A concrete model is a final frozen dataclass: its fields are its settings. What it builds
    ends in an `nn.Linear` with one output a class, has no softmax, and has no buffers: a batch
    norm's running statistics would travel outside of the weights, so group norm stands instead.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    """Where the architecture comes from: authors, year, section or table."""

    @abstractmethod
    def build(self, task: Task) -> nn.Module:
        """Give the network with fresh weights, drawn from torch's global generator.

        Take `initial_weights` for weights that follow from a seed.

        Raises:
            PlanError: if the network cannot take such inputs.

        """
