"""The networks of the federations; plans name them by reference."""

import torch
from torch import Tensor, nn

CLASSES = 3
WIDTH = 4

VOCABULARY, LENGTH = 30, 6
"""Of texts: number of tokens, and tokens of a text."""


def linear() -> nn.Module:
    """One layer, the last."""
    return nn.Linear(WIDTH, CLASSES)


def dense() -> nn.Module:
    """One hidden layer."""
    return nn.Sequential(nn.Linear(WIDTH, 8), nn.ReLU(), nn.Linear(8, CLASSES))


def normed() -> nn.Module:
    """A batch norm between two layers, so that buffers travel."""
    return nn.Sequential(
        nn.Linear(WIDTH, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, CLASSES)
    )


class Tokens(nn.Module):
    """The mean of token vectors, and a head."""

    def __init__(self) -> None:
        """Padding has the number 0."""
        super().__init__()
        self.vectors = nn.EmbeddingBag(VOCABULARY, 8, mode="mean", padding_idx=0)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits."""
        return self.head(self.vectors(tokens))


class Adapted(nn.Module):
    """A frozen layer with an adapter of rank 2, and a head; the adapter and the head travel."""

    def __init__(self) -> None:
        """The base is the same in every process."""
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        base = torch.randn(8, WIDTH, generator=generator) / 2
        self.base = nn.Parameter(base, requires_grad=False)
        self.lora_A = nn.Parameter(torch.randn(2, WIDTH) / 2)
        self.lora_B = nn.Parameter(torch.zeros(8, 2))
        self.head = nn.Linear(8, CLASSES)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits."""
        return self.head(torch.relu(inputs @ (self.base + self.lora_B @ self.lora_A).T))
