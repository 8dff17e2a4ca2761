"""Readings of clients, informative or uninformative about their label shares."""

import torch
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.class_tokens import Readings

CLASSES, FEATURES, CLIENTS, STEPS = 3, 4, 160, 60

HALVES = torch.arange(CLIENTS) % 2


def shares_of_all(alpha: float = 0.5) -> Tensor:
    return torch.from_numpy(Seed(0).numpy().dirichlet([alpha] * CLASSES, CLIENTS))


def nothing(clients: int = CLIENTS, log_sizes: Tensor | None = None) -> Readings:
    """Make readings of clients with zero updates."""
    return Readings(
        torch.zeros(clients, CLASSES, FEATURES + 1),
        torch.zeros(clients, 2 * CLASSES + 1, CLASSES),
        torch.zeros(2 * CLASSES + 1, CLASSES),
        torch.zeros(clients, 3 * CLASSES + 2, CLASSES),
        log_sizes,
    )


def noisy(seed: int = 1) -> Readings:
    """Make readings that do not depend on shares."""
    generator = Seed(seed).generator()
    parts = [
        torch.randn(part.shape, generator=generator)
        for part in (nothing().change, nothing().answers, nothing().pull)
    ]
    return Readings(parts[0], parts[1], nothing().before, parts[2])


def telling(shares: Tensor, seed: int = 1) -> Readings:
    """Make noisy readings whose common factors and biases rise with the shares."""
    noise = noisy(seed)
    change, pull = noise.change.clone(), noise.pull.clone()
    change[:, :, -1] = shares + 0.05 * change[:, :, -1]
    pull[:, -2:] = shares[:, None] + 0.05 * pull[:, -2:]
    return Readings(change, noise.answers, noise.before, pull)


def far_off() -> Readings:
    """Make readings outside the range of the training data."""
    usual = noisy(8)
    return Readings(usual.change * 1e6, usual.answers * 1e6, usual.before, usual.pull * 1e15)


def missed(estimates: Tensor, shares: Tensor) -> float:
    """Return the mean L1 distance over the clients."""
    return float((estimates - shares).abs().sum(1).mean())
