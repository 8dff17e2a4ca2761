"""A network, data, and steps of DP-SGD with one pass for each record."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the usual name
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        convolution = nn.Conv2d(1, 2, 3)
        self.layers = nn.Sequential(convolution, nn.Flatten(), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def load_data(partition: int, partitions: int):
    generator = torch.Generator().manual_seed(partition)
    x = torch.rand(12, 1, 4, 4, generator=generator)
    y = torch.randint(3, (12,), generator=generator)
    train = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
    return train, DataLoader(TensorDataset(x[:4], y[:4]), batch_size=4)


def train(net, loader, clip, noise_multiplier, rate):
    """Train; return the mean loss."""
    optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9)
    losses = []
    for x, y in loader:
        sums = [torch.zeros_like(p) for p in net.parameters()]
        for one, label in zip(x, y, strict=True):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(one[None]), label[None])
            loss.backward()
            losses.append(loss.item())
            torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
            for total, p in zip(sums, net.parameters(), strict=True):
                total.add_(p.grad)
        for total, p in zip(sums, net.parameters(), strict=True):
            p.grad = (total + noise_multiplier * clip * torch.randn_like(p)) / len(x)
        optimizer.step()
    return sum(losses) / len(losses)
