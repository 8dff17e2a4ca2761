"""The digits, their partition among clients, and the network."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

CLIENT_IMAGES = 1497
"""Number of images that clients hold; the remaining 300 are the attacker's auxiliary data."""

ALPHA = 0.5
"""Concentration of the Dirichlet partition; smaller values give more skewed label shares."""

MAX_LEVEL = 16.0


def build() -> nn.Module:
    """Build the network with initial weights."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def digits() -> tuple[Tensor, Tensor]:
    """Load all images, standardised by those that clients hold, and their labels."""
    bunch = load_digits()
    pixels = torch.from_numpy(bunch.images).float()[:, None] / MAX_LEVEL
    client_pixels = pixels[:CLIENT_IMAGES]
    return (pixels - client_pixels.mean()) / client_pixels.std(), torch.from_numpy(
        bunch.target
    ).long()


def partition(number: int, count: int) -> tuple[Tensor, Tensor]:
    """Return the data of one of `count` clients, from a fixed Dirichlet partition."""
    inputs, labels = digits()
    generator = np.random.default_rng(0)
    client_rows = []
    for digit in range(10):
        rows = generator.permutation(np.flatnonzero(labels[:CLIENT_IMAGES] == digit))
        shares = generator.dirichlet(np.full(count, ALPHA))
        cuts = (np.cumsum(shares)[:-1] * len(rows)).astype(int)
        client_rows.append(np.split(rows, cuts)[number])
    rows = torch.from_numpy(np.concatenate(client_rows))
    return inputs[rows], labels[rows]


def train(
    model: nn.Module, inputs: Tensor, labels: Tensor, rate: float, epochs: int, batch: int
) -> float:
    """Train in place by plain SGD, and return the mean loss of the last epoch."""
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
    """Return the share of correct predictions; 0 without examples."""
    with torch.inference_mode():
        right = model(inputs).argmax(1) == labels
    return float(right.double().sum() / max(len(right), 1))
