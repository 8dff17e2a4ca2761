"""Estimators of label shares from accuracies by round: the paper's network, and regressions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from torch import Tensor, nn

from overheard.core.seeds import Seed
from overheard.learning.fitting.share_network import (
    FitSchedule,
    fit_share_network,
    kl_divergence,
    predict_shares,
)
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.label_shares.attacks.whispers import AttentiveRecurrence, Whispers
from overheard_studies.measurements.whispers_readings import Readings, Setting

Numbers = NDArray[np.float64]

RIDGES = tuple(10.0 ** (step / 2) for step in range(-2, 9))
"""Penalties of ridge regression, of which leave-one-out chooses."""

WIDTHS = (0.01, 0.03, 0.1)
"""Gammas of the kernel, times the number of features."""

KERNEL_RIDGES = (1e-3, 1e-2, 1e-1)
"""Penalties of kernel regression, of which a quarter of the virtual clients chooses."""

DEFAULT = Whispers()
"""The attack with its default network."""

WIDER = Whispers(hidden=128, epochs=250, batch=128, rate=1e-2, slow_after=180)
"""The attack with a network that 900 virtual clients suffice for; chosen on a tuning seed."""


@final
@dataclass(frozen=True, slots=True)
class Task:
    """Features and shares of the virtual clients, and features of the victims."""

    features: Float[Tensor, "virtual rounds classes"]
    shares: Float[Tensor, "virtual classes"]
    victims: Float[Tensor, "victims rounds classes"]

    def flat(self) -> tuple[Numbers, Numbers]:
        """Return both features in standard units of the virtual clients, one row a client."""
        mean, spread = self.features.mean(0), self.features.std(0) + 1e-2
        parts = [(one - mean) / spread for one in (self.features, self.victims)]
        first, second = (one.flatten(1).double().numpy() for one in parts)
        return first, second


def by_network(task: Task, seed: Seed, *, attack: Whispers) -> Float[Tensor, "victims classes"]:
    """Estimate by the attack's network: an LSTM with attention over rounds."""
    classes = task.shares.shape[1]
    network = fit_share_network(
        partial(AttentiveRecurrence, task.features.shape[2], classes, attack.hidden),
        task.features,
        task.shares,
        kl_divergence,
        FitSchedule(attack.epochs, attack.batch, attack.rate, attack.slow_after),
        seed,
    )
    return predict_shares(network, task.victims)


def by_ridge(task: Task, seed: Seed) -> Float[Tensor, "victims classes"]:
    """Estimate by ridge regression."""
    features, victims = task.flat()
    fitted = RidgeCV(RIDGES).fit(features, task.shares.numpy())
    return _to_shares(fitted.predict(victims))


def by_kernel(task: Task, seed: Seed) -> Float[Tensor, "victims classes"]:
    """Estimate by ridge regression with a Gaussian kernel."""
    features, victims = task.flat()
    shares = task.shares.numpy()
    taught = len(shares) * 3 // 4

    def error(model: KernelRidge) -> float:
        model.fit(features[:taught], shares[:taught])
        return float(np.abs(model.predict(features[taught:]) - shares[taught:]).mean())

    models = [
        KernelRidge(kernel="rbf", gamma=width / features.shape[1], alpha=ridge)
        for width in WIDTHS
        for ridge in KERNEL_RIDGES
    ]
    return _to_shares(min(models, key=error).fit(features, shares).predict(victims))


def by_boosting(task: Task, seed: Seed) -> Float[Tensor, "victims classes"]:
    """Estimate by gradient boosting, one model a class."""
    features, victims = task.flat()
    columns = [
        HistGradientBoostingRegressor(max_iter=150, random_state=0)
        .fit(features, task.shares[:, label].numpy())
        .predict(victims)
        for label in range(task.shares.shape[1])
    ]
    return _to_shares(np.stack(columns, 1))


def by_perceptron(task: Task, seed: Seed) -> Float[Tensor, "victims classes"]:
    """Estimate by a wide network without recurrence."""
    features, victims = (torch.from_numpy(one).float() for one in task.flat())

    def build() -> nn.Module:
        return nn.Sequential(
            nn.Linear(features.shape[1], 512),
            nn.ReLU(),
            nn.Linear(512, 512),
            nn.ReLU(),
            nn.Linear(512, task.shares.shape[1]),
        )

    schedule = FitSchedule(epochs=100, batch=64, slow_after=70)
    network = fit_share_network(build, features, task.shares, kl_divergence, schedule, seed)
    return predict_shares(network, victims)


def by_guess(task: Task, seed: Seed) -> Float[Tensor, "victims classes"]:
    """Claim equal shares."""
    classes = task.shares.shape[1]
    return torch.full((len(task.victims), classes), 1 / classes).double()


def read_accuracies(readings: Readings, test: int) -> Float[Tensor, "clients rounds classes"]:
    """Return the accuracies, as the paper's network reads them."""
    return readings.accuracies


def read_log_odds(readings: Readings, test: int) -> Float[Tensor, "clients rounds classes"]:
    """Return the log odds of the accuracies on so many examples, finite also at 0 and 1."""
    right, wrong = test * readings.accuracies, test * (1 - readings.accuracies)
    return ((right + 0.5) / (wrong + 0.5)).log()


def read_losses(readings: Readings, test: int) -> Float[Tensor, "clients rounds classes"]:
    """Return the losses in standard units of all clients, which is not the paper's."""
    return (readings.losses - readings.losses.mean(0)) / readings.losses.std(0)


@final
@dataclass(frozen=True, slots=True)
class Estimator:
    """What is read of each client, and how shares are claimed from it."""

    read: Callable[[Readings, int], Float[Tensor, "clients rounds classes"]]
    claim: Callable[[Task, Seed], Float[Tensor, "victims classes"]]


ESTIMATORS: Mapping[str, Estimator] = {
    "equal shares": Estimator(read_accuracies, by_guess),
    "LSTM": Estimator(read_accuracies, partial(by_network, attack=DEFAULT)),
    "wider LSTM": Estimator(read_accuracies, partial(by_network, attack=WIDER)),
    "ridge": Estimator(read_log_odds, by_ridge),
    "kernel": Estimator(read_log_odds, by_kernel),
    "boosting": Estimator(read_log_odds, by_boosting),
    "perceptron": Estimator(read_log_odds, by_perceptron),
    "wider LSTM, losses": Estimator(read_losses, partial(by_network, attack=WIDER)),
    "kernel, losses": Estimator(read_losses, by_kernel),
}
"""All estimators, in the order of the tables."""

FAST = ("equal shares", "ridge", "kernel", "kernel, losses")
"""Those that take a second or less."""


def mean_error(setting: Setting, readings: Readings, name: str, seed: Seed) -> float:
    """Return an estimator's mean L1 over the victims."""
    estimator = ESTIMATORS[name]
    features = estimator.read(readings, setting.test)
    virtual = setting.virtual
    task = Task(features[:virtual], readings.shares[:virtual], features[virtual:])
    errors = estimator.claim(task, seed.child(name)) - readings.shares[virtual:]
    return float(errors.abs().sum(1).mean())


def _to_shares(estimates: Numbers) -> Float[Tensor, "victims classes"]:
    return torch.stack([normalize_to_shares(row) for row in torch.from_numpy(estimates)])
