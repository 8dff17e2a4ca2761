"""The network, the customers of each bank, and how a bank trains."""

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

COLUMNS = [
    "income",
    "age",
    "amount",
    "months",
    "open_loans",
    "late_payments",
    "savings",
    "tenure",
]
BANKS = 5
# Mean and standard deviation of each column, agreed upon before the project.
CENTRE = np.array([42.0, 44.0, 11.0, 36.0, 2.0, 1.0, 9.0, 6.0])
WIDTH = np.array([14.0, 12.0, 5.0, 12.0, 1.4, 1.0, 6.0, 4.0])


class Net(nn.Module):
    """An MLP with one output: the log-odds of a default."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(len(COLUMNS), 32)
        self.fc2 = nn.Linear(32, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.out(x)


def customers(seed: int, count: int, share: float) -> pd.DataFrame:
    """Draw customers, of whom a share defaults."""
    rng = np.random.default_rng(seed)
    default = (rng.random(count) < share).astype(int)
    shift = np.array([-0.7, -0.3, 0.5, 0.3, 0.8, 1.1, -0.8, -0.4])
    values = rng.standard_normal((count, len(COLUMNS))) + default[:, None] * shift
    frame = pd.DataFrame((CENTRE + WIDTH * values).round(2), columns=COLUMNS)
    frame["default"] = default
    return frame


def bank(partition_id: int) -> pd.DataFrame:
    """The customers of one bank; banks differ in their share of defaults."""
    return customers(
        partition_id, 90 + 20 * partition_id, [0.1, 0.2, 0.35, 0.5, 0.7][partition_id]
    )


def to_tensors(frame: pd.DataFrame):
    x = (frame[COLUMNS].to_numpy() - CENTRE) / WIDTH
    y = frame["default"].to_numpy()
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


def load_data(partition_id: int, batch_size: int) -> DataLoader:
    return DataLoader(TensorDataset(*to_tensors(bank(partition_id))), batch_size, shuffle=True)


def label_counts(partition_id: int) -> list[int]:
    return np.bincount(bank(partition_id)["default"], minlength=2).tolist()


def train(net, trainloader, epochs, lr):
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    net.train()
    running_loss = 0.0
    for _ in range(epochs):
        for x, y in trainloader:
            optimizer.zero_grad()
            loss = criterion(net(x).squeeze(1), y)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
    return running_loss / len(trainloader)


def test(net, loader):
    net.eval()
    right = total = 0
    with torch.no_grad():
        for x, y in loader:
            right += ((net(x).squeeze(1) > 0) == (y > 0.5)).sum().item()
            total += len(y)
    return right / total
