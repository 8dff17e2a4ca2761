"""The paper's five data sets, each with its users and with the sizes that we chose."""

from dataclasses import dataclass
from typing import final

from overheard.data.dataset import DataSource
from overheard.data.datasets.cifar10 import Cifar10
from overheard.data.datasets.fashion_mnist import FashionMnist
from overheard.data.datasets.fer2013 import Fer2013
from overheard.data.datasets.ham10000 import Ham10000
from overheard.data.datasets.mnist import Mnist
from overheard.learning.model import Model
from overheard.learning.models.decaf_conv2 import DecafConv2
from overheard.learning.models.decaf_modules import DecafModules
from overheard.papers.decaf.users import User, tables


@final
@dataclass(frozen=True, slots=True)
class DecafBenchmark:
    """One data set of the paper.

    Args:
        name: as the paper writes it.
        table: the one that gives the users.
        source: of the data.
        model: the paper's network for them, as far as Table II tells it.
        examples: of each user.
        auxiliary: examples of each class that the attacker has.
        columns: for each of our labels, the column in which the paper's table has it.
        note: how our data differ from the paper's; a sentence or more.

    """

    name: str
    table: str
    source: DataSource
    model: Model
    examples: int
    auxiliary: int
    columns: tuple[int, ...]
    note: str

    @property
    def users(self) -> tuple[User, ...]:
        """Who takes part, with the shares in the order of our labels."""
        return tuple(user.reordered(self.columns) for user in tables()[self.table])


MNIST = DecafBenchmark(
    "MNIST",
    "table3",
    Mnist(),
    DecafConv2(),
    examples=1200,
    auxiliary=100,
    columns=tuple(range(10)),
    note="All 60,000 training images are there to draw from.",
)

FASHION_MNIST = DecafBenchmark(
    "Fashion-MNIST",
    "table4",
    FashionMnist(),
    DecafConv2(),
    examples=1200,
    auxiliary=100,
    columns=tuple(range(10)),
    note="All 60,000 training images are there to draw from.",
)

CIFAR10 = DecafBenchmark(
    "CIFAR-10",
    "table5",
    Cifar10(),
    DecafModules(),
    examples=600,
    auxiliary=100,
    columns=tuple(range(10)),
    note=(
        "The data folder may hold 1,000 training images of each class as JPEG copies, not the "
        "5,000 originals: users are small enough to be served from them."
    ),
)

FER2013 = DecafBenchmark(
    "FER-2013",
    "table6",
    Fer2013(),
    DecafModules(modules=4),
    examples=280,
    auxiliary=50,
    # The table names no columns; the text lists the classes in alphabetical order (anger,
    # disgust, fear, happiness, neutrality, sadness, surprise), ours have neutral last.
    columns=(0, 1, 2, 3, 5, 6, 4),
    note=(
        "The table does not name its columns, which we take to be in the order of the text. "
        "The data folder may hold 10,000 training images as JPEG copies, 152 of them of the "
        "class disgust: hence 50 auxiliary examples a class, not 100, and small users."
    ),
)

SKIN_CANCER = DecafBenchmark(
    "SkinCancer",
    "table7",
    Ham10000(),
    DecafModules(),
    examples=45,
    auxiliary=10,
    columns=tuple(range(7)),
    note=(
        "HAM10000 at 28 x 28 pixels, one image a lesion: 4,790 training images, 48 of them of "
        "the class df and 64 of vasc, hence 10 auxiliary examples a class, not 100, and users "
        "of 45 examples. With the 115 images of df in all of HAM10000 the paper cannot have "
        "held 100 apart from its users' either, and does not say what it did."
    ),
)

BENCHMARKS = (MNIST, FASHION_MNIST, CIFAR10, FER2013, SKIN_CANCER)
