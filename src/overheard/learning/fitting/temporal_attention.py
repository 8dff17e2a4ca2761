"""A recurrent network over rounds with temporal attention."""

from typing import final

from jaxtyping import Float
from torch import Tensor, nn


@final
class TemporalAttention(nn.Module):
    """An attention-weighted mean of the states of a sequence.

    Ma et al. 2025, equations 7 to 9: e_t = v^T tanh(W h_t + b), a = softmax over t of e,
    c = sum over t of a_t h_t. If all scores are equal, it is the plain mean.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.bend = nn.Linear(hidden, hidden)
        self.score = nn.Linear(hidden, 1, bias=False)

    def forward(self, states: Float[Tensor, "clients rounds hidden"]) -> Tensor:
        """Return the weighted mean of the states of each client: (clients, hidden)."""
        weights = self.score(self.bend(states).tanh()).softmax(1)  # (clients, rounds, 1)
        means: Tensor = (weights * states).sum(1)
        return means


@final
class AttentiveRecurrence(nn.Module):
    """An LSTM of one layer over rounds, attention over its states, and a linear layer.

    Ma et al. 2025, Algorithm 2, which names no width: 64 is this project's guess.
    """

    def __init__(self, features: int, classes: int, hidden: int = 64) -> None:
        super().__init__()
        self.recurrence = nn.LSTM(features, hidden, batch_first=True)
        self.attention = TemporalAttention(hidden)
        self.last = nn.Linear(hidden, classes)

    def forward(self, features: Float[Tensor, "clients rounds features"]) -> Tensor:
        """Return logits: (clients, classes)."""
        states, _ = self.recurrence(features)
        logits: Tensor = self.last(self.attention(states))
        return logits
