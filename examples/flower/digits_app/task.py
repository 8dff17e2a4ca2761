"""The digits, who holds which, and the network that learns them."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

HELD = 1497
"""Images that clients hold; the 300 after them are nobody's, and an attacker's to have."""

ALPHA = 0.5
"""How evenly digits are shared out; the smaller, the more a client has of few digits only."""

DARKEST = 16.0


def build() -> nn.Module:
    """Give the network with fresh weights."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def digits() -> tuple[Tensor, Tensor]:
    """All images, standardised by those that clients hold, and their labels."""
    bunch = load_digits()
    pixels = torch.from_numpy(bunch.images).float()[:, None] / DARKEST
    held = pixels[:HELD]
    return (pixels - held.mean()) / held.std(), torch.from_numpy(bunch.target).long()


def partition(number: int, count: int) -> tuple[Tensor, Tensor]:
    """What one of so many clients holds; drawn by Dirichlet, always alike."""
    inputs, labels = digits()
    drawn = np.random.default_rng(0)
    mine = []
    for digit in range(10):
        rows = drawn.permutation(np.flatnonzero(labels[:HELD] == digit))
        shares = drawn.dirichlet(np.full(count, ALPHA))
        cuts = (np.cumsum(shares)[:-1] * len(rows)).astype(int)
        mine.append(np.split(rows, cuts)[number])
    rows = torch.from_numpy(np.concatenate(mine))
    return inputs[rows], labels[rows]


def train(
    model: nn.Module, inputs: Tensor, labels: Tensor, rate: float, epochs: int, batch: int
) -> float:
    """Train in place by plain SGD; gives the mean loss of the last epoch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    total = 0.0
    for _ in range(epochs):
        total = 0.0
        for rows in torch.randperm(len(inputs)).split(batch):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(inputs[rows]), labels[rows])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
    return total / max(len(inputs), 1)


def accuracy(model: nn.Module, inputs: Tensor, labels: Tensor) -> float:
    """Share of these that the model gets right; 0 of none."""
    with torch.inference_mode():
        right = model(inputs).argmax(1) == labels
    return float(right.double().sum() / max(len(right), 1))
