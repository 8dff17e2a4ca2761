"""Flats of five agencies, and a regression of their price."""

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

INPUTS = ["area", "rooms", "floor", "year", "distance", "balcony"]
MEAN = pd.Series(
    {"area": 75, "rooms": 3, "floor": 3, "year": 1975, "distance": 6, "balcony": 0.5}
)
STD = pd.Series(
    {"area": 25, "rooms": 1.2, "floor": 2, "year": 25, "distance": 3, "balcony": 0.5}
)
PRICE_MEAN, PRICE_STD = 310_000.0, 90_000.0
BATCH_SIZE = 16


def flats(seed: int, count: int, centre: float = 0.0) -> pd.DataFrame:
    """Draw flats; `centre` moves them towards larger ones."""
    rng = np.random.default_rng(seed)
    area = (75 + 25 * (rng.standard_normal(count) + centre)).clip(20).round(1)
    frame = pd.DataFrame(
        {
            "area": area,
            "rooms": (area / 25 + rng.normal(0, 0.5, count)).clip(1).round(),
            "floor": rng.integers(0, 8, count),
            "year": rng.integers(1920, 2024, count),
            "distance": rng.gamma(4, 1.5, count).round(2),
            "balcony": rng.integers(0, 2, count),
        }
    )
    price = 3400 * area + 900 * (frame["year"] - 1975) - 12000 * (frame["distance"] - 6)
    price += 55000 + 15000 * frame["balcony"] + rng.normal(0, 20000, count)
    frame["price"] = price.round(-2)
    return frame


def agency(partition_id: int) -> pd.DataFrame:
    return flats(
        partition_id, 70 + 10 * partition_id, [-0.8, -0.3, 0.0, 0.4, 1.2][partition_id]
    )


def load_data(partition_id: int):
    frame = agency(partition_id)
    x = ((frame[INPUTS] - MEAN) / STD).to_numpy(np.float32)
    y = ((frame["price"] - PRICE_MEAN) / PRICE_STD).to_numpy(np.float32)
    dataset = TensorDataset(torch.from_numpy(x), torch.from_numpy(y).unsqueeze(1))
    return DataLoader(dataset, batch_size=BATCH_SIZE, shuffle=True)


def label_counts(partition_id: int) -> list[int]:
    return [len(agency(partition_id))]


def make_net(hidden: int = 24) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(len(INPUTS), hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, 1),
    )


def train(net: nn.Module, loader: DataLoader, epochs: int, lr: float) -> float:
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)
    loss_fn = nn.MSELoss()
    losses = []
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return float(np.mean(losses))


def mean_error(net: nn.Module, loader: DataLoader) -> float:
    """Return the mean absolute error in euros."""
    with torch.inference_mode():
        errors = torch.cat([(net(x) - y).abs() for x, y in loader])
    return float(errors.mean()) * PRICE_STD
