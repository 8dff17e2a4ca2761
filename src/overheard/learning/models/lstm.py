"""An LSTM that classifies texts."""

from dataclasses import dataclass
from typing import ClassVar, final

from jaxtyping import Float, Int
from torch import Tensor, nn

from overheard.core.settings import Positive
from overheard.core.task import Task
from overheard.learning.input_shapes import vocabulary_size
from overheard.learning.model import Model

PADDING = 0
"""The token after the end of a text."""


@final
@dataclass(frozen=True, slots=True)
class Lstm(Model):
    """Word vectors, one LSTM, and a linear layer on its state after the last word.

    The default is the language model of the paper. An example is a window of words, and its
    label is the next word, so each word is a class; with 5,000 words there are 867,496
    parameters. The paper's review model has dim 50 and hidden 128; for ratings see
    `Recipe.loss`.

    On one core a step takes 2.2 ms for 32 windows of 10 words and 1.4 ms for 16. The three
    products of the last layer and the LSTM take a third each, at the core's full speed. A step
    takes 3.4 ms with texts packed by length. With a handwritten LSTM it takes 3.1 ms, with
    autograd or a handwritten backward pass.

    Args:
        dim: length of a word vector.
        hidden: units of the LSTM.

    """

    name: ClassVar[str] = "lstm"
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks), Section 5.1, NNLM-FL; Hochreiter and "
        "Schmidhuber 1997"
    )

    dim: Positive = 100
    hidden: Positive = 64

    def build(self, task: Task) -> nn.Module:
        """Build the network with fresh weights."""
        return _Reader(vocabulary_size(task, self.name), self.dim, self.hidden, task.outputs)


class _Reader(nn.Module):
    def __init__(self, tokens: int, dim: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.table = nn.Embedding(tokens, dim, padding_idx=PADDING)
        self.recurrence = nn.LSTM(dim, hidden, batch_first=True)
        self.end = _End()
        self.last = nn.Linear(hidden, classes)

    def forward(self, tokens: Int[Tensor, "examples tokens"]) -> Tensor:
        """Return logits: (examples, classes)."""
        states, _ = self.recurrence(self.table(tokens))  # (examples, tokens, hidden)
        logits: Tensor = self.last(self.end(states, tokens))
        return logits


class _End(nn.Module):
    """The state after the last word, or after one padding token if a text has no word.

    The LSTM also runs over the padding, whose states are unused; this is cheaper than skipping
    it. This is a module so that forward hooks can record its output.
    """

    def forward(
        self,
        states: Float[Tensor, "examples tokens hidden"],
        tokens: Int[Tensor, "examples tokens"],
    ) -> Float[Tensor, "examples hidden"]:
        last = ((tokens != PADDING).sum(1) - 1).clamp(min=0)  # (examples)
        index = last[:, None, None].expand(-1, 1, states.shape[2])
        return states.gather(1, index).squeeze(1)
