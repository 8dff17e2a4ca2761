"""Networks that tell label shares from one round's readings, all numbers at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.learning.chance import seeded
from overheard.learning.fitting.fit import told
from overheard.learning.fitting.side_by_side import (
    NetworkTraining,
    OfNumbers,
    SideBySide,
    load_weights,
    train_side_by_side,
)
from overheard.learning.fitting.standard import Standard, standard_of
from overheard.questions.label_shares.estimators.class_tokens import (
    CLIP,
    Readings,
    plain_numbers,
)

MOST_DIRECTIONS = 256
"""Of the plain numbers: their largest principal components."""

STEEPNESS = 3.0
"""Standard deviation to which the largest principal component is brought."""

NUMBER_WIDTH = 256

WEIGHTS = "networks of numbers/"
"""Before the names of the networks' weights among the tensors of a `NumberReader`."""


@final
@dataclass(frozen=True, slots=True)
class NumberReader:
    """Networks that read the largest principal components of plain numbers.

    Args:
        scales: of the numbers, one a network.
        directions: the components that each network reads.
        networks: one a set of virtual clients that taught it.

    """

    scales: tuple[Standard, ...]
    directions: tuple[Float[Tensor, "numbers directions"], ...]
    networks: SideBySide

    def read(self, readings: Readings) -> Float[Tensor, "networks clients classes"]:
        """What each network tells of new clients."""
        inputs = _inputs(plain_numbers(readings), self.scales, self.directions)
        return told(self.networks, inputs)

    def tensors(self) -> dict[str, Tensor]:
        """All that was learned, by name, for `from_tensors`."""
        own: dict[str, Tensor] = self.networks.state_dict(prefix=WEIGHTS)
        for place, way in enumerate(self.directions):
            own |= self.scales[place].tensors(f"scales/{place}")
            own[f"directions/{place}"] = way.contiguous()
        return own

    @staticmethod
    def from_tensors(kept: Mapping[str, Tensor], classes: int, networks: int) -> "NumberReader":
        """What `tensors` gave of so many networks, as it was."""
        places = range(networks)
        directions = tuple(kept[f"directions/{place}"] for place in places)
        # Fresh weights are drawn, and overwritten at once.
        with seeded(Seed(0)):
            fresh = _fresh(networks, classes, directions[0].shape[1])
        load_weights(fresh, kept, WEIGHTS)
        scales = tuple(Standard.from_tensors(kept, f"scales/{place}") for place in places)
        return NumberReader(scales, directions, fresh)


def learn_numbers(
    readings: Readings,
    shares: Float[Tensor, "clients classes"],
    rows: Sequence[Int[Tensor, " _rows"]],
    steps: int,
    seed: Seed,
) -> NumberReader:
    """Train one network on each of these sets of virtual clients."""
    numbers = plain_numbers(readings)
    scales = tuple(standard_of(numbers[own]) for own in rows)
    most = min(MOST_DIRECTIONS, numbers.shape[1], *map(len, rows))
    directions = tuple(
        _directions(scale.of(numbers[own]), most)
        for scale, own in zip(scales, rows, strict=True)
    )
    inputs = _inputs(numbers, scales, directions)
    training = NetworkTraining(steps, batch=128, weight_decay=0.1)
    with seeded(seed):
        networks = _fresh(len(rows), shares.shape[1], most)
        train_side_by_side(
            networks, inputs, shares.float(), rows, training, seed.child("batches")
        )
    return NumberReader(scales, directions, networks)


def _directions(
    numbers: Float[Tensor, "clients numbers"], most: int
) -> Float[Tensor, "numbers directions"]:
    """Principal components, the largest with deviation `STEEPNESS`."""
    _, lengths, ways = torch.linalg.svd(numbers, full_matrices=False)
    largest = float(lengths[0]) / len(numbers) ** 0.5
    steep: Tensor = ways[:most].T * (STEEPNESS / largest if largest > 0 else 0.0)
    return steep


def _inputs(
    numbers: Float[Tensor, "clients numbers"],
    scales: Sequence[Standard],
    directions: Sequence[Float[Tensor, "numbers directions"]],
) -> Float[Tensor, "networks clients directions"]:
    pairs = zip(scales, directions, strict=True)
    # Noise and divergence may throw a client far off what the networks have met.
    return torch.stack([(scale.of(numbers) @ way).clamp(-CLIP, CLIP) for scale, way in pairs])


def _fresh(networks: int, classes: int, directions: int) -> SideBySide:
    return OfNumbers(networks, classes, directions, NUMBER_WIDTH)
