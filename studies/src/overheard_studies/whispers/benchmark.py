"""The paper's four data sets, each with a chosen federation."""

from dataclasses import dataclass, replace
from typing import final

from overheard.data.dataset import DataSource
from overheard.data.datasets.ag_news import AgNews
from overheard.data.datasets.fashion_mnist import FashionMnist
from overheard.data.datasets.fer2013 import Fer2013
from overheard.data.datasets.mnist import Mnist
from overheard.learning.model import Model
from overheard.learning.models.ldia_conv import LdiaConv
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.text_bag import TextBag


@final
@dataclass(frozen=True, slots=True)
class WhispersSize:
    """The size of a federation and of a set of virtual clients.

    Args:
        source: source of the data.
        model: model that the federation trains.
        rate: local learning rate.
        batch: examples per local step.
        examples: size of the smallest and of the largest client, virtual or real.
        clients: clients of the federation.
        auxiliary: auxiliary examples of each class.
        rounds: rounds of the federation.
        virtual: virtual clients that the attacker trains.
        seeds: seeds of the runs.
        test: examples on which the accuracy is measured.

    """

    source: DataSource
    model: Model
    rate: float
    batch: int
    examples: tuple[int, int]
    clients: int
    auxiliary: int
    rounds: int = 10
    virtual: int = 1200
    seeds: tuple[int, ...] = (0, 1, 2)
    test: int = 2000


@final
@dataclass(frozen=True, slots=True)
class WhispersBenchmark:
    """One data set of the paper.

    Args:
        name: name as the paper writes it.
        full: size of a full run.
        reduced: size of a quick run.
        alphas: alphas of the Dirichlet distributions.
        labels: number of labels of a client in the split with few labels.
        note: how the data differ from the paper's; a sentence or more.

    """

    name: str
    full: WhispersSize
    reduced: WhispersSize
    alphas: tuple[float, ...] = (0.5, 1.0, 2.0)
    labels: int = 3
    note: str = ""

    @property
    def key(self) -> str:
        """Name in the keys of values and in folders."""
        return self.full.source.name


def reduce_size(
    full: WhispersSize, source: DataSource, model: Model | None = None
) -> WhispersSize:
    """Reduce a federation for a quick run: smaller clients, fewer rounds, one seed.

    Args:
        full: size of a full run.
        source: source of the same data, smaller if possible.
        model: model of the quick run; None = the same.

    """
    return replace(
        full,
        source=source,
        model=model or full.model,
        batch=32,
        examples=(300, 500),
        auxiliary=min(full.auxiliary, 100),
        rounds=3,
        virtual=240,
        seeds=(0,),
    )


_MNIST = WhispersSize(Mnist(), LdiaConv(), 0.01, 128, (3000, 5000), clients=8, auxiliary=1000)
_FASHION_MNIST = replace(_MNIST, source=FashionMnist())
_FER2013 = WhispersSize(Fer2013(), LdiaConv(), 0.01, 32, (600, 1000), clients=6, auxiliary=50)
_AG_NEWS = WhispersSize(AgNews(), TextBag(), 0.1, 32, (600, 1000), clients=6, auxiliary=200)

MNIST = WhispersBenchmark("MNIST", _MNIST, reduce_size(_MNIST, Mnist(shrink=2)))

FASHION_MNIST = WhispersBenchmark(
    "F-MNIST", _FASHION_MNIST, reduce_size(_FASHION_MNIST, FashionMnist(shrink=2))
)

FER2013 = WhispersBenchmark(
    "FER2013",
    _FER2013,
    reduce_size(_FER2013, Fer2013(), Mlp((32,))),
    note=(
        "The data folder may hold 10,000 training images, 152 of them of the class disgust. "
        "There are therefore 50 auxiliary examples per class, clients of 600 to 1,000 "
        "examples, and few clients that hold much of disgust."
    ),
)

AG_NEWS = WhispersBenchmark(
    "AG-News",
    _AG_NEWS,
    reduce_size(_AG_NEWS, AgNews(vocabulary=5000)),
    alphas=(0.1, 0.4, 1.0),
    labels=2,
    note=(
        "The data folder may hold 10,646 training texts, 1,578 of them of the class Sports. "
        "There are therefore 200 auxiliary examples per class and clients of 600 to 1,000."
    ),
)
