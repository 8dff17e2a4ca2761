"""The mean of word vectors with a small network on top."""

from dataclasses import dataclass
from typing import ClassVar, final

from torch import nn

from overheard.core.settings import Positive
from overheard.core.task import Task
from overheard.learning.input_shapes import vocabulary_size
from overheard.learning.model import Model


@final
@dataclass(frozen=True, slots=True)
class TextBag(Model):
    """Word vectors averaged over a text (without padding), and one hidden layer.

    Args:
        dim: length of a word vector.
        hidden: units of the hidden layer.

    """

    name: ClassVar[str] = "text_bag"
    source: ClassVar[str] = "Joulin et al. 2017 (fastText), with a hidden layer"

    dim: Positive = 64
    hidden: Positive = 64

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights."""
        tokens = vocabulary_size(task, self.name)
        return nn.Sequential(
            nn.EmbeddingBag(tokens, self.dim, mode="mean", padding_idx=0),
            nn.Linear(self.dim, self.hidden),
            nn.ReLU(inplace=True),
            nn.Linear(self.hidden, task.outputs),
        )
