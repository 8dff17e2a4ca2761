"""The paper's five data sets, with their users and the chosen sizes."""

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
from overheard_studies.decaf.published_users import PublishedUser, published_tables


@final
@dataclass(frozen=True, slots=True)
class DecafBenchmark:
    """One data set of the paper.

    Args:
        name: name of the data set as the paper writes it.
        table: name of the table with the users.
        source: source of the data.
        model: the paper's network, as far as Table II describes it.
        examples: examples of each user.
        auxiliary: auxiliary examples of each class.
        label_columns: for each label of the data source, its column in the paper's table.
        note: how the data differ from the paper's; a sentence or more.

    """

    name: str
    table: str
    source: DataSource
    model: Model
    examples: int
    auxiliary: int
    label_columns: tuple[int, ...]
    note: str

    @property
    def users(self) -> tuple[PublishedUser, ...]:
        """Return the users, with the shares in the order of the source's labels."""
        return tuple(
            user.reordered(self.label_columns) for user in published_tables()[self.table]
        )


MNIST = DecafBenchmark(
    "MNIST",
    "table3",
    Mnist(),
    DecafConv2(),
    examples=1200,
    auxiliary=100,
    label_columns=tuple(range(10)),
    note="All 60,000 training images are available.",
)

FASHION_MNIST = DecafBenchmark(
    "Fashion-MNIST",
    "table4",
    FashionMnist(),
    DecafConv2(),
    examples=1200,
    auxiliary=100,
    label_columns=tuple(range(10)),
    note="All 60,000 training images are available.",
)

CIFAR10 = DecafBenchmark(
    "CIFAR-10",
    "table5",
    Cifar10(),
    DecafModules(),
    examples=600,
    auxiliary=100,
    label_columns=tuple(range(10)),
    note=(
        "The data folder may hold 1,000 training images of each class as JPEG copies instead "
        "of the 5,000 originals; users are small enough for them."
    ),
)

FER2013 = DecafBenchmark(
    "FER-2013",
    "table6",
    Fer2013(),
    DecafModules(modules=4),
    examples=280,
    auxiliary=50,
    # The table names no columns. The text lists the classes in alphabetical order (anger,
    # disgust, fear, happiness, neutrality, sadness, surprise); the source has neutral last.
    label_columns=(0, 1, 2, 3, 5, 6, 4),
    note=(
        "The table does not name its columns; they are assumed to be in the order of the "
        "text. The data folder may hold 10,000 training images as JPEG copies, 152 of them of "
        "the class disgust. There are therefore 50 auxiliary examples per class instead of "
        "100, and small users."
    ),
)

SKIN_CANCER = DecafBenchmark(
    "SkinCancer",
    "table7",
    Ham10000(),
    DecafModules(),
    examples=45,
    auxiliary=10,
    label_columns=tuple(range(7)),
    note=(
        "HAM10000 at 28 x 28 pixels, one image per lesion: 4,790 training images, 48 of them "
        "of the class df and 64 of vasc. There are therefore 10 auxiliary examples per class "
        "instead of 100, and users of 45 examples. HAM10000 has 115 images of df in all, so "
        "the paper cannot have 100 auxiliary ones that its users do not hold; it does not say "
        "what it did."
    ),
)

BENCHMARKS = (MNIST, FASHION_MNIST, CIFAR10, FER2013, SKIN_CANCER)
