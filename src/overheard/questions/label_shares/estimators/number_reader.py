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
    CLIP,
    Readings,
    plain_numbers,
)

MOST_DIRECTIONS = 256
"""Largest number of principal components of the features that a network reads."""

STEEPNESS = 3.0
"""Standard deviation to which the largest principal component is scaled."""

NUMBER_WIDTH = 256

WEIGHTS = "networks of numbers/"
"""Prefix of the names of the networks' weights among the tensors of a `NumberReader`."""


@final
@dataclass(frozen=True, slots=True)
class NumberReader:
    """Networks on the largest principal components of a round's features.

    Args:
        scales: scales of the features, one per network.
        directions: principal components that each network reads.
        networks: one per set of virtual clients that it was trained on.

    """

    scales: tuple[Standardizer, ...]
    directions: tuple[Float[Tensor, "numbers directions"], ...]
    networks: NetworkEnsemble

    def read(self, readings: Readings) -> Float[Tensor, "networks clients classes"]:
        """Estimate the shares of new clients with each network."""
        inputs = _inputs(plain_numbers(readings), self.scales, self.directions)
        return predict_shares(self.networks, inputs)

    def tensors(self) -> dict[str, Tensor]:
        """Return all fitted tensors by name, for `from_tensors`."""
        tensors: dict[str, Tensor] = self.networks.state_dict(prefix=WEIGHTS)
        for index, direction in enumerate(self.directions):
            tensors |= self.scales[index].tensors(f"scales/{index}")
            tensors[f"directions/{index}"] = direction.contiguous()
        return tensors

    @staticmethod
    def from_tensors(
        tensors: Mapping[str, Tensor], classes: int, networks: int
    ) -> "NumberReader":
        """Restore this many networks from `tensors`."""
        indices = range(networks)
        directions = tuple(tensors[f"directions/{index}"] for index in indices)
        # The initial weights are drawn, then overwritten.
        with seeded(Seed(0)):
            restored = _fresh(networks, classes, directions[0].shape[1])
        load_ensemble_weights(restored, tensors, WEIGHTS)
        scales = tuple(
            Standardizer.from_tensors(tensors, f"scales/{index}") for index in indices
        )
        return NumberReader(scales, directions, restored)


def learn_numbers(
    readings: Readings,
    shares: Float[Tensor, "clients classes"],
    rows: Sequence[Int[Tensor, " _rows"]],
    steps: int,
    seed: Seed,
) -> NumberReader:
    """Train one network on each of these sets of virtual clients."""
    features = plain_numbers(readings)
    scales = tuple(fit_standardizer(features[own]) for own in rows)
    most = min(MOST_DIRECTIONS, features.shape[1], *map(len, rows))
    directions = tuple(
        _directions(scale.standardize(features[own]), most)
        for scale, own in zip(scales, rows, strict=True)
    )
    inputs = _inputs(features, scales, directions)
    training = EnsembleTraining(steps, batch=128, weight_decay=0.1)
    with seeded(seed):
        networks = _fresh(len(rows), shares.shape[1], most)
        train_ensemble(networks, inputs, shares.float(), rows, training, seed.child("batches"))
    return NumberReader(scales, directions, networks)


def _directions(
    numbers: Float[Tensor, "clients numbers"], most: int
) -> Float[Tensor, "numbers directions"]:
    """Return principal components, scaled so that the largest has deviation `STEEPNESS`."""
    _, lengths, axes = torch.linalg.svd(numbers, full_matrices=False)
    largest = float(lengths[0]) / len(numbers) ** 0.5
    scaled: Tensor = axes[:most].T * (STEEPNESS / largest if largest > 0 else 0.0)
    return scaled


def _inputs(
    numbers: Float[Tensor, "clients numbers"],
    scales: Sequence[Standardizer],
    directions: Sequence[Float[Tensor, "numbers directions"]],
) -> Float[Tensor, "networks clients directions"]:
    pairs = zip(scales, directions, strict=True)
    # Noise and divergence may put a client far outside the training distribution.
    return torch.stack(
        [(scale.standardize(numbers) @ axes).clamp(-CLIP, CLIP) for scale, axes in pairs]
    )


def _fresh(networks: int, classes: int, directions: int) -> NetworkEnsemble:
    return MlpEnsemble(networks, classes, directions, NUMBER_WIDTH)
