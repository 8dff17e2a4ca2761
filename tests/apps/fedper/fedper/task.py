"""Pictures of four kinds of leaves, and the training of FedPer."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LEAVES = ("oak", "maple", "birch", "willow")
ALPHA = 0.4


def leaves(seed: int, count: int, shares) -> TensorDataset:
    """Draw pictures (count, 3, 12, 12) of leaves: each kind has its colour and its stripes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(len(LEAVES), count, p=shares)
    x = rng.normal(0, 0.6, (count, 3, 12, 12))
    for row, kind in enumerate(y):
        x[row, kind % 3] += 0.5
        x[row, :, kind::4] += 0.8
    return TensorDataset(
        torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y.astype(np.int64))
    )


def garden(partition_id: int) -> TensorDataset:
    shares = np.random.default_rng(50 + partition_id).dirichlet(np.full(len(LEAVES), ALPHA))
    return leaves(partition_id, 80, shares)


def spare() -> TensorDataset:
    """Return pictures from the internet, which are in no garden."""
    return leaves(1234, 260, [0.25] * 4)


def label_counts(partition_id: int) -> list[int]:
    return torch.bincount(garden(partition_id).tensors[1], minlength=len(LEAVES)).tolist()


def train(model: nn.Module, loader: DataLoader, epochs: int, learning_rate: float) -> float:
    """Train the body and the head."""
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(
        [{"params": model.body.parameters()}, {"params": model.head.parameters()}],
        lr=learning_rate,
    )
    model.train()
    total = 0.0
    for _ in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            total += float(loss)
    return total / len(loader)
