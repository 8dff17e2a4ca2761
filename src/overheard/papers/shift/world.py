"""The paper's three data sets, each with its federation and the round of its shift."""

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

RATE = 1e-4
"""Of Adam. The paper states it for the centralised model alone."""

BATCH = 32
"""The paper's is not told."""

SEEDS = (0, 1, 2, 3, 4, 5)
"""Twice the paper's three runs, whose intervals leave nearly every sentence undecided."""

CLIENTS = (2, 3, 5, 10)

SEVERAL = {10: 3}
"""How many clients shift, where it is more than one, by the number of clients."""


@final
@dataclass(frozen=True, slots=True)
class ShiftSize:
    """A federation as large as there is time for.

    Args:
        source: of the data.
        model: that is trained.
        rounds: how many.
        since: the first round on new data, from 0: one less than the paper's s.
        examples: of each client, by how many clients there are; a model without a federation
            has those of two clients.
        auxiliary: examples of the attacker's own, for validation and representations; our own
            detector takes as many as a client holds.
        rate: of Adam.
        virtual: clients that our own detector trains in each round; None = it is not run.
        seeds: of the runs.
        test: examples to measure the accuracy on.

    """

    source: DataSource
    model: Model
    rounds: int
    since: int
    examples: Mapping[int, int]
    auxiliary: int = 1000
    rate: float = RATE
    virtual: int | None = None
    seeds: tuple[int, ...] = SEEDS
    test: int = 1000


@final
@dataclass(frozen=True, slots=True)
class ShiftScenario:
    """One data set of the paper.

    Args:
        name: as the paper writes it.
        labels: how many there are.
        pool: examples to train on, in all.
        full: how it is run.
        reduced: how it is run in a hurry.
        even: the share of even labels, of what is held in equal parts, after the shift of the
            scalability study.
        hours: that all runs of one setting take at full size on two cores, from the time of
            a step.
        disk: gigabytes that the largest of its federations leaves, all runs together.

    """

    name: str
    labels: int
    pool: int
    full: ShiftSize
    reduced: ShiftSize
    even: float
    hours: float
    disk: float

    @property
    def key(self) -> str:
        """Its name in figures and folders."""
        return self.full.source.name


IMAGES = dict(zip(CLIENTS, (6700, 4400, 2600, 1300), strict=True))
PEOPLE = dict(zip(CLIENTS, (3900, 2600, 1500, 800), strict=True))
FEW_IMAGES = dict(zip(CLIENTS, (1000, 700, 400, 200), strict=True))
FEW_PEOPLE = dict(zip(CLIENTS, (600, 400, 240, 120), strict=True))

VIRTUAL = 40
"""As many as our detector needs at least to be of use; at full size they take twenty times as
long as the federation, so that it is left to the small network of the Census."""

HURRIED = 1e-3
"""The rate of a hurried run, whose few steps would hardly train at `RATE`."""

MNIST = ShiftScenario(
    "MNIST",
    10,
    60_000,
    ShiftSize(Mnist(), ShiftConv(), 20, 10, IMAGES),
    ShiftSize(Mnist(shrink=2), Mlp((64, 32)), 14, 10, FEW_IMAGES, 1000, HURRIED, VIRTUAL),
    even=0.7,
    hours=1.5,
    disk=13.0,
)

FASHION_MNIST = ShiftScenario(
    "Fashion-MNIST",
    10,
    60_000,
    ShiftSize(FashionMnist(), ShiftConv(), 40, 20, IMAGES),
    ShiftSize(
        FashionMnist(shrink=2), Mlp((64, 32)), 14, 10, FEW_IMAGES, 1000, HURRIED, VIRTUAL
    ),
    even=0.7,
    hours=3.0,
    disk=26.0,
)

CENSUS = ShiftScenario(
    "Census",
    2,
    32_561,
    ShiftSize(Adult(), ShiftCensus(), 100, 50, PEOPLE, 4000, virtual=VIRTUAL),
    ShiftSize(Adult(), ShiftCensus(), 14, 10, FEW_PEOPLE, 1000, HURRIED, VIRTUAL),
    even=0.6,
    hours=0.5,
    disk=0.3,
)
