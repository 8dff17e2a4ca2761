"""The settings that are tried: a base, one change at a time, a grid, and leaks of setting."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, final

from overheard.core.recipe import Recipe
from overheard.data.dataset import DataSource
from overheard.data.datasets.fashion_mnist import FashionMnist
from overheard.data.datasets.mnist import Mnist
from overheard.learning.model import Model
from overheard.learning.models.logistic import Logistic
from overheard.learning.models.mlp import Mlp

SOURCES: Mapping[str, DataSource] = {
    "MNIST": Mnist(shrink=2),
    "Fashion-MNIST": FashionMnist(shrink=2),
}
"""Both data sets at 14 x 14 pixels."""

ALPHAS = (0.5, 1.0, 2.0)
"""The Dirichlet splits of the paper's Table 3."""

AGGREGATED = 10
"""Victims whose updates form the next broadcast; the others only receive it, as do those of
the paper, which are virtual clients that were set aside."""

Pool = Literal["apart", "shared", "same clients"]
"""Victims hold examples of their own, draw from the attacker's, or are the first of the very
virtual clients that train the attack."""


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """One federation, the attacker's virtual clients, and the victims.

    Args:
        source: name of the data set.
        alpha: of the Dirichlet distribution of the victims' label shares.
        hidden: units of each hidden layer of the network; () = logistic regression.
        rate: local learning rate of SGD.
        batch: examples per local step.
        epochs: local epochs.
        momentum: momentum of SGD.
        rounds: observed rounds, from the first.
        examples: smallest and largest number of examples of a client.
        auxiliary: auxiliary examples of each class.
        test: test examples of each class; accuracies are measured on them.
        virtual: virtual clients that train the attack.
        victims: clients whose shares are inferred.
        expected: alpha of the virtual clients; None = that of the victims.
        pool: where the victims' examples come from.

    """

    source: str = "MNIST"
    alpha: float = 1.0
    hidden: tuple[int, ...] = (32,)
    rate: float = 0.01
    batch: int = 128
    epochs: int = 1
    momentum: float = 0.0
    rounds: int = 5
    examples: tuple[int, int] = (3000, 5000)
    auxiliary: int = 2500
    test: int = 500
    virtual: int = 300
    victims: int = 60
    expected: float | None = None
    pool: Pool = "apart"

    @property
    def model(self) -> Model:
        """The network of the federation."""
        return Mlp(self.hidden) if self.hidden else Logistic()

    @property
    def recipe(self) -> Recipe:
        """The local training."""
        return Recipe(self.rate, self.epochs, self.batch, momentum=self.momentum)


SMALL = Setting()
"""The base of the search: fewer virtual clients and rounds than the grid has."""

SEARCH: Mapping[str, Setting] = {
    "base": SMALL,
    "rate 0.003": replace(SMALL, rate=0.003),
    "rate 0.03": replace(SMALL, rate=0.03),
    "rate 0.1": replace(SMALL, rate=0.1),
    "3 rounds": replace(SMALL, rounds=3),
    "10 rounds": replace(SMALL, rounds=10),
    "900 virtual clients": replace(SMALL, virtual=900),
    "3 local epochs": replace(SMALL, epochs=3),
    "batches of 32": replace(SMALL, batch=32),
    "batches of 512": replace(SMALL, batch=512),
    "momentum 0.9, rate 0.001": replace(SMALL, momentum=0.9, rate=0.001),
    "logistic regression": replace(SMALL, hidden=()),
    "hidden layers 128 and 64": replace(SMALL, hidden=(128, 64)),
    "clients of 300 to 500": replace(SMALL, examples=(300, 500)),
    "clients of 4,000": replace(SMALL, examples=(4000, 4000)),
    "1,000 auxiliary a class": replace(SMALL, auxiliary=1000),
    "100 auxiliary a class": replace(SMALL, auxiliary=100),
    "20 auxiliary a class": replace(SMALL, auxiliary=20),
    "50 test examples a class": replace(SMALL, test=50),
    "virtual clients of alpha 0.5": replace(SMALL, expected=0.5),
    "virtual clients of alpha 2": replace(SMALL, expected=2.0),
    "as docs/label-shares.md": replace(
        SMALL, hidden=(128, 64), rate=0.05, rounds=3, auxiliary=1000, test=50
    ),
}
"""Changes of one factor each, and last the setting whose L1 is far from the published one."""

BEST = replace(SMALL, rounds=10, virtual=900, victims=100)
"""The setting that the search chose, with as many virtual clients as the paper's."""

GRID: Mapping[str, Setting] = {
    f"{source} {alpha:g}": replace(BEST, source=source, alpha=alpha)
    for source in SOURCES
    for alpha in ALPHAS
}
"""The chosen setting on both data sets and all alphas."""

FLOOR: Mapping[str, Setting] = {"MNIST 1": BEST}
"""The setting in which all estimators are compared."""

FAR = SEARCH["as docs/label-shares.md"]

LEAKS: Mapping[str, Setting] = {
    "none": FAR,
    "victims draw from the attacker's examples": replace(FAR, pool="shared"),
    "so, and 50 of them a class": replace(FAR, pool="shared", auxiliary=50),
    "victims trained the attack": replace(FAR, pool="same clients"),
}
"""Ways in which a setting may tell more than it should."""
