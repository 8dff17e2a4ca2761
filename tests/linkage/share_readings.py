"""Readings of clients, informative or uninformative about their label shares."""

import torch
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.class_tokens import ProbeReadings

CLASSES, FEATURES, CLIENTS, STEPS = 3, 4, 160, 60

HALVES = torch.arange(CLIENTS) % 2

ON_QUARTER = torch.arange(CLIENTS) // 2 % 2 == 1


def draw_shares(alpha: float = 0.5) -> Tensor:
    return torch.from_numpy(Seed(0).numpy().dirichlet([alpha] * CLASSES, CLIENTS))


def zero_readings(clients: int = CLIENTS, log_sizes: Tensor | None = None) -> ProbeReadings:
    """Make readings of clients with zero updates."""
    return ProbeReadings(
        torch.zeros(clients, CLASSES, FEATURES + 1),
        torch.zeros(clients, 2 * CLASSES + 1, CLASSES),
        torch.zeros(2 * CLASSES + 1, CLASSES),
        torch.zeros(clients, 3 * CLASSES + 2, CLASSES),
        log_sizes,
    )


def noise_readings(seed: int = 1) -> ProbeReadings:
    """Make readings that do not depend on shares."""
    generator = Seed(seed).generator()
    parts = [
        torch.randn(part.shape, generator=generator)
        for part in (
            zero_readings().last_layer_change,
            zero_readings().outputs,
            zero_readings().class_gradients,
        )
    ]
    return ProbeReadings(parts[0], parts[1], zero_readings().broadcast_outputs, parts[2])


def informative_readings(shares: Tensor, seed: int = 1) -> ProbeReadings:
    """Make noisy readings whose common factors and biases rise with the shares."""
    noise = noise_readings(seed)
    change, pull = noise.last_layer_change.clone(), noise.class_gradients.clone()
    change[:, :, -1] = shares + 0.05 * change[:, :, -1]
    pull[:, -2:] = shares[:, None] + 0.05 * pull[:, -2:]
    return ProbeReadings(change, noise.outputs, noise.broadcast_outputs, pull)


def outlying_readings() -> ProbeReadings:
    """Make readings outside the range of the training data."""
    usual = noise_readings(8)
    return ProbeReadings(
        usual.last_layer_change * 1e6,
        usual.outputs * 1e6,
        usual.broadcast_outputs,
        usual.class_gradients * 1e15,
    )


def mean_l1(estimates: Tensor, shares: Tensor) -> float:
    """Return the mean L1 distance over the clients."""
    return float((estimates - shares).abs().sum(1).mean())
