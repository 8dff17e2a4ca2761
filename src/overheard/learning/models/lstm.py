"""A recurrent network that reads a text word by word."""

from dataclasses import dataclass
from typing import ClassVar, final

from jaxtyping import Float, Int
from torch import Tensor, nn

from overheard.core.task import Task
from overheard.learning.model import Model
from overheard.learning.shapes import vocabulary

PADDING = 0
"""The token after the end of a text."""


@final
@dataclass(frozen=True, slots=True)
class Lstm(Model):
    """Word vectors, one LSTM over them, and the classes from its state after the last word.

    By default it is the language model of the paper: an example is a window of words, its label
    the word that follows, so there is a class for each word: with 5,000 of them 867,496
    parameters. Its review model has dim 50 and hidden 128; see `Recipe.loss` for the ratings.

    On one core a step takes 2.2 ms for 32 windows of 10 words and 1.4 ms for 16, of which the
    last layer's three products and the LSTM take a third each, as fast as that core multiplies.
    With texts packed by length a step takes 3.4 ms, and 3.1 ms with an LSTM written out, be it
    under autograd or with the way back written out too.

    Args:
        dim: length of a word vector.
        hidden: units of the LSTM.

    """

    name: ClassVar[str] = "lstm"
    source: ClassVar[str] = (
        "Orekondy et al. 2018 (Gradient-Leaks), Section 5.1, NNLM-FL; Hochreiter and "
        "Schmidhuber 1997"
    )

    dim: int = 100
    hidden: int = 64

    def __post_init__(self) -> None:
        """Refuse a layer without units."""
        if min(self.dim, self.hidden) < 1:
            raise ValueError("dim and hidden must be 1 or more")

    def build(self, task: Task) -> nn.Module:
        """Give the network with fresh weights."""
        return _Reader(vocabulary(task, self.name), self.dim, self.hidden, task.classes)


class _Reader(nn.Module):
    def __init__(self, tokens: int, dim: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.table = nn.Embedding(tokens, dim, padding_idx=PADDING)
        self.recurrence = nn.LSTM(dim, hidden, batch_first=True)
        self.end = _End()
        self.last = nn.Linear(hidden, classes)

    def forward(self, tokens: Int[Tensor, "examples tokens"]) -> Tensor:
        """Logits: (examples, classes)."""
        states, _ = self.recurrence(self.table(tokens))  # (examples, tokens, hidden)
        logits: Tensor = self.last(self.end(states, tokens))
        return logits


class _End(nn.Module):
    """The state after the last word, or after one padding where a text has no word.

    The LSTM reads on over the padding behind it, which nobody looks at: cheaper than to leave
    it out. A module of its own, so that what it gives can be heard.
    """

    def forward(
        self,
        states: Float[Tensor, "examples tokens hidden"],
        tokens: Int[Tensor, "examples tokens"],
    ) -> Float[Tensor, "examples hidden"]:
        last = ((tokens != PADDING).sum(1) - 1).clamp(min=0)  # (examples)
        places = last[:, None, None].expand(-1, 1, states.shape[2])
        return states.gather(1, places).squeeze(1)
