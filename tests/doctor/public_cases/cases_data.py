"""Records of nodes: small, learnable, and drawn on the spot."""

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


def records_of(node: int, count: int = 48) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(node)
    x = torch.randn(count, 20, generator=generator)
    return x, (x[:, 0] + x[:, 1] > 0).long()


def load_data(partition: int, batch: int = 8) -> tuple[DataLoader, DataLoader]:
    x, y = records_of(partition)
    train, test = TensorDataset(x[:40], y[:40]), TensorDataset(x[40:], y[40:])
    return DataLoader(train, batch_size=batch, shuffle=True), DataLoader(test, batch_size=batch)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(20, 12), nn.Linear(12, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.relu(self.first(x)))


def measure(net: nn.Module, loader: DataLoader) -> tuple[float, float]:
    """Return mean loss and accuracy."""
    loss, right, seen = 0.0, 0, 0
    with torch.no_grad():
        for x, y in loader:
            out = net(x)
            loss += float(nn.functional.cross_entropy(out, y, reduction="sum"))
            right += int((out.argmax(1) == y).sum())
            seen += len(y)
    return loss / max(seen, 1), right / max(seen, 1)
