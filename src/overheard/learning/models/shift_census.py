"""The network of Brunner and Montuoro's shift paper for census records."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import nn

from overheard.core.task import Task
from overheard.learning.model import Model
from overheard.learning.models.mlp import Mlp


@final
@dataclass(frozen=True, slots=True)
class ShiftCensus(Model):
    """Hidden layers of 64, 32, 16 and 8 units; 3,722 parameters on 14 columns, 2 classes."""

    name: ClassVar[str] = "shift_census"
    source: ClassVar[str] = (
        "Brunner and Montuoro (data distribution shifts), Section 4, for Census"
    )

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights."""
        return Mlp(hidden=(64, 32, 16, 8)).build(task)
