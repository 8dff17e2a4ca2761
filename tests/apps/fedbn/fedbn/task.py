"""Digits from five scanners, a CNN with batch norm, and its training."""

from collections import OrderedDict

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SCANNERS = 5
HELD = 1000
"""Number of the images that scanners hold; nobody holds the others."""
# Brightness and contrast of each scanner.
LOOKS = [(0.0, 1.0), (0.15, 0.7), (-0.1, 1.2), (0.2, 0.5), (0.05, 0.9)]


class CNN(nn.Module):
    def __init__(self, num_classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(16)
        self.fc1 = nn.Linear(16 * 2 * 2, 32)
        self.bn3 = nn.BatchNorm1d(32)
        self.fc2 = nn.Linear(32, num_classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        x = F.relu(self.bn3(self.fc1(x.flatten(1))))
        return self.fc2(x)


def shared_state(net: nn.Module) -> "OrderedDict[str, torch.Tensor]":
    """All tensors but those of batch norm layers."""
    return OrderedDict((k, v) for k, v in net.state_dict().items() if "bn" not in k)


def images():
    bunch = load_digits()
    return (bunch.images / 16 * 255).astype(np.uint8), bunch.target


def partition(partition_id: int):
    """The images of one scanner, of mostly some digits."""
    x, y = images()
    rng = np.random.default_rng(partition_id)
    weights = rng.dirichlet(np.full(10, 0.5))[y[:HELD]]
    mine = np.arange(HELD) % SCANNERS == partition_id
    weights = np.where(mine, weights, 0)
    rows = rng.choice(HELD, 100, replace=False, p=weights / weights.sum())
    return x[rows], y[rows]


def load_data(partition_id: int, batch_size: int):
    x, y = partition(partition_id)
    brightness, contrast = LOOKS[partition_id]
    x = torch.from_numpy(x).float()[:, None] / 255 * contrast + brightness
    dataset = TensorDataset(x, torch.from_numpy(y).long())
    return DataLoader(dataset, batch_size=batch_size, shuffle=True)


def label_counts(partition_id: int) -> list[int]:
    return np.bincount(partition(partition_id)[1], minlength=10).tolist()


def train(net, trainloader, epochs, lr, device="cpu"):
    net.to(device).train()
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    for _ in range(epochs):
        for x, labels in trainloader:
            optimizer.zero_grad()
            loss = criterion(net(x.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
    return loss.item()


def evaluate(net, loader):
    net.eval()
    with torch.no_grad():
        right = sum((net(x).argmax(1) == y).sum().item() for x, y in loader)
    return right / len(loader.dataset)
