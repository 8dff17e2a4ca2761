"""Networks that estimate label shares from all features of a round at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.learning.fitting.ensembles import (
    EnsembleTraining,
    MlpEnsemble,
    NetworkEnsemble,
    load_ensemble_weights,
    train_ensemble,
)
from overheard.learning.fitting.share_network import predict_shares
from overheard.learning.fitting.standardizer import Standardizer, fit_standardizer
from overheard.learning.seeding import seeded
from overheard.questions.label_shares.estimators.class_tokens import (
    LARGEST_DEVIATION,
    ProbeReadings,
    flat_features,
)

MOST_COMPONENTS = 256
"""Largest number of principal components of the features that a network reads."""

LARGEST_COMPONENT_DEVIATION = 3.0
"""Standard deviation to which the largest principal component is scaled."""

MLP_WIDTH = 256

WEIGHT_PREFIX = "networks of numbers/"
"""Prefix of the names of the networks' weights among the tensors of a `MlpRegressor`."""


@final
@dataclass(frozen=True, slots=True)
class MlpRegressor:
    """Networks on the largest principal components of a round's features.

    Args:
        scales: scales of the features, one per network.
        components: principal components that each network reads.
        networks: one per set of virtual clients that it was trained on.

    """

    scales: tuple[Standardizer, ...]
    components: tuple[Float[Tensor, "numbers directions"], ...]
    networks: NetworkEnsemble

    def estimate_shares(
        self, readings: ProbeReadings
    ) -> Float[Tensor, "networks clients classes"]:
        """Estimate the shares of new clients with each network."""
        inputs = _inputs(flat_features(readings), self.scales, self.components)
        return predict_shares(self.networks, inputs)

    def tensors(self) -> dict[str, Tensor]:
        """Return all fitted tensors by name, for `from_tensors`."""
        tensors: dict[str, Tensor] = self.networks.state_dict(prefix=WEIGHT_PREFIX)
        for index, direction in enumerate(self.components):
            tensors |= self.scales[index].tensors(f"scales/{index}")
            tensors[f"directions/{index}"] = direction.contiguous()
        return tensors

    @staticmethod
    def from_tensors(
        tensors: Mapping[str, Tensor], classes: int, networks: int
    ) -> "MlpRegressor":
        """Restore this many networks from `tensors`."""
        indices = range(networks)
        directions = tuple(tensors[f"directions/{index}"] for index in indices)
        # The initial weights are drawn, then overwritten.
        with seeded(Seed(0)):
            restored = _new_networks(networks, classes, directions[0].shape[1])
        load_ensemble_weights(restored, tensors, WEIGHT_PREFIX)
        scales = tuple(
            Standardizer.from_tensors(tensors, f"scales/{index}") for index in indices
        )
        return MlpRegressor(scales, directions, restored)


def fit_mlp_regressor(
    readings: ProbeReadings,
    shares: Float[Tensor, "clients classes"],
    rows: Sequence[Int[Tensor, " _rows"]],
    steps: int,
    seed: Seed,
) -> MlpRegressor:
    """Train one network on each of these sets of virtual clients."""
    features = flat_features(readings)
    scales = tuple(fit_standardizer(features[own]) for own in rows)
    most = min(MOST_COMPONENTS, features.shape[1], *map(len, rows))
    directions = tuple(
        _principal_components(scale.standardize(features[own]), most)
        for scale, own in zip(scales, rows, strict=True)
    )
    inputs = _inputs(features, scales, directions)
    training = EnsembleTraining(steps, batch=128, weight_decay=0.1)
    with seeded(seed):
        networks = _new_networks(len(rows), shares.shape[1], most)
        train_ensemble(networks, inputs, shares.float(), rows, training, seed.child("batches"))
    return MlpRegressor(scales, directions, networks)


def _principal_components(
    numbers: Float[Tensor, "clients numbers"], most: int
) -> Float[Tensor, "numbers directions"]:
    """Return principal components; the largest has `LARGEST_COMPONENT_DEVIATION`."""
    _, lengths, axes = torch.linalg.svd(numbers, full_matrices=False)
    largest = float(lengths[0]) / len(numbers) ** 0.5
    scaled: Tensor = axes[:most].T * (
        LARGEST_COMPONENT_DEVIATION / largest if largest > 0 else 0.0
    )
    return scaled


def _inputs(
    numbers: Float[Tensor, "clients numbers"],
    scales: Sequence[Standardizer],
    directions: Sequence[Float[Tensor, "numbers directions"]],
) -> Float[Tensor, "networks clients directions"]:
    pairs = zip(scales, directions, strict=True)
    # Noise and divergence may put a client far outside the training distribution.
    return torch.stack(
        [
            (scale.standardize(numbers) @ axes).clamp(-LARGEST_DEVIATION, LARGEST_DEVIATION)
            for scale, axes in pairs
        ]
    )


def _new_networks(networks: int, classes: int, directions: int) -> NetworkEnsemble:
    return MlpEnsemble(networks, classes, directions, MLP_WIDTH)
