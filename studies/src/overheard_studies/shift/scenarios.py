"""The scenarios: the paper's three data sets, with federation and round of the shift."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.data.dataset import DataSource
from overheard.data.datasets.adult import Adult
from overheard.data.datasets.fashion_mnist import FashionMnist
from overheard.data.datasets.mnist import Mnist
from overheard.learning.model import Model
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.shift_census import ShiftCensus
from overheard.learning.models.shift_conv import ShiftConv

LEARNING_RATE = 1e-4
"""Learning rate of Adam. The paper states it for the centralized model only."""

BATCH_SIZE = 32
"""The paper does not state it."""

SEEDS = (0, 1, 2, 3, 4, 5)
"""Twice the paper's three runs, whose intervals leave nearly every statement undecided."""

CLIENTS = (2, 3, 5, 10)

SHIFTING_CLIENTS = {10: 3}
"""Number of shifting clients by number of clients, if it is more than one."""


@final
@dataclass(frozen=True, slots=True)
class ShiftSize:
    """How large a federation is, and how it trains.

    Args:
        source: source of the data.
        model: model that is trained.
        rounds: number of rounds.
        shift_round: first round on new data, from 0; one less than the paper's s.
        examples: examples of each client by number of clients; the centralized model has those
            for two clients.
        auxiliary: auxiliary examples for validation and representations; Overheard's detector
            uses as many as a client holds.
        rate: rate of Adam.
        virtual: virtual clients of Overheard's detector in each round; None = it is not run.
        seeds: seeds of the runs.
        test: examples on which the accuracy is measured.

    """

    source: DataSource
    model: Model
    rounds: int
    shift_round: int
    examples: Mapping[int, int]
    auxiliary: int = 1000
    rate: float = LEARNING_RATE
    virtual: int | None = None
    seeds: tuple[int, ...] = SEEDS
    test: int = 1000


@final
@dataclass(frozen=True, slots=True)
class ShiftScenario:
    """One data set of the paper.

    Args:
        name: as the paper writes it.
        labels: number of labels.
        training_examples: number of training examples in total.
        full: size of a full run.
        reduced: size of a quick run.
        even_share: share of even labels after the shift in the scalability study, if even and
            odd labels were equally frequent before.
        hours: hours for all runs of one setting at full size on two cores, extrapolated from
            the time of a step.
        disk_gigabytes: gigabytes that all runs of its largest federation write.

    """

    name: str
    labels: int
    training_examples: int
    full: ShiftSize
    reduced: ShiftSize
    even_share: float
    hours: float
    disk_gigabytes: float

    @property
    def key(self) -> str:
        """Name in the keys of values and in folders."""
        return self.full.source.name


IMAGE_EXAMPLES = dict(zip(CLIENTS, (6700, 4400, 2600, 1300), strict=True))
CENSUS_EXAMPLES = dict(zip(CLIENTS, (3900, 2600, 1500, 800), strict=True))
QUICK_IMAGE_EXAMPLES = dict(zip(CLIENTS, (1000, 700, 400, 200), strict=True))
QUICK_CENSUS_EXAMPLES = dict(zip(CLIENTS, (600, 400, 240, 120), strict=True))

VIRTUAL_CLIENTS = 40
"""The smallest useful number for Overheard's detector.

At full size they take twenty times as long as the federation, so only the small network of
the Census has them there.
"""

QUICK_RATE = 1e-3
"""Learning rate of a quick run: its few steps hardly change the model at `LEARNING_RATE`."""


def _quick_images(source: DataSource) -> ShiftSize:
    """Return the quick size for images of 14 x 14 pixels."""
    return ShiftSize(
        source,
        Mlp((64, 32)),
        14,
        10,
        QUICK_IMAGE_EXAMPLES,
        1000,
        QUICK_RATE,
        VIRTUAL_CLIENTS,
    )


MNIST = ShiftScenario(
    "MNIST",
    10,
    60_000,
    ShiftSize(Mnist(), ShiftConv(), 20, 10, IMAGE_EXAMPLES),
    _quick_images(Mnist(shrink=2)),
    even_share=0.7,
    hours=1.5,
    disk_gigabytes=13.0,
)

FASHION_MNIST = ShiftScenario(
    "Fashion-MNIST",
    10,
    60_000,
    ShiftSize(FashionMnist(), ShiftConv(), 40, 20, IMAGE_EXAMPLES),
    _quick_images(FashionMnist(shrink=2)),
    even_share=0.7,
    hours=3.0,
    disk_gigabytes=26.0,
)

CENSUS = ShiftScenario(
    "Census",
    2,
    32_561,
    ShiftSize(Adult(), ShiftCensus(), 100, 50, CENSUS_EXAMPLES, 4000, virtual=VIRTUAL_CLIENTS),
    ShiftSize(
        Adult(), ShiftCensus(), 14, 10, QUICK_CENSUS_EXAMPLES, 1000, QUICK_RATE, VIRTUAL_CLIENTS
    ),
    even_share=0.6,
    hours=0.5,
    disk_gigabytes=0.3,
)
