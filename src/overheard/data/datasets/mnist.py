"""MNIST and Fashion-MNIST: digits and clothing, 70,000 grey images of 28 x 28 each."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, final

from overheard.data.dataset import Dataset, DataSource
from overheard.data.reading.fetch import RemoteFile
from overheard.data.reading.mnist_files import MnistFiles, load_mnist_like

CLASS_NAMES = tuple("0123456789")

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)


FASHION_CLASS_NAMES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)

FASHION_MIRRORS = (
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
)


def _remote(mirrors: tuple[str, ...], file: str, sha256: str) -> RemoteFile:
    return RemoteFile(file, tuple(mirror + file for mirror in mirrors), sha256)


FILES = MnistFiles(
    "mnist",
    _remote(
        MIRRORS,
        "train-images-idx3-ubyte.gz",
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    ),
    _remote(
        MIRRORS,
        "train-labels-idx1-ubyte.gz",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    ),
    _remote(
        MIRRORS,
        "t10k-images-idx3-ubyte.gz",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    ),
    _remote(
        MIRRORS,
        "t10k-labels-idx1-ubyte.gz",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
)

FASHION_FILES = MnistFiles(
    "fashion_mnist",
    _remote(
        FASHION_MIRRORS,
        "train-images-idx3-ubyte.gz",
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    ),
    _remote(
        FASHION_MIRRORS,
        "train-labels-idx1-ubyte.gz",
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    ),
    _remote(
        FASHION_MIRRORS,
        "t10k-images-idx3-ubyte.gz",
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    ),
    _remote(
        FASHION_MIRRORS,
        "t10k-labels-idx1-ubyte.gz",
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    ),
)


@final
@dataclass(frozen=True, slots=True)
class Mnist(DataSource):
    """The full data set in its published parts: 60,000 training and 10,000 test images.

    Args:
        shrink: each block of `shrink` x `shrink` pixels is replaced by its mean, so that 2
            gives images of 14 x 14; a divisor of 28. 1 = as published.

    """

    shrink: Literal[1, 2, 4, 7, 14, 28] = 1

    name: ClassVar[str] = "mnist"
    source: ClassVar[str] = "LeCun, Cortes, Burges 1998; commonly given as CC BY-SA 3.0"

    def load(self, folder: Path | None) -> Dataset:
        """Read `mnist/mnist.npz` or, without it, the published files, downloaded if needed."""
        return load_mnist_like(folder, FILES, CLASS_NAMES, self.shrink)


@final
@dataclass(frozen=True, slots=True)
class FashionMnist(DataSource):
    """The full data set in its published parts: 60,000 training and 10,000 test images.

    Args:
        shrink: each block of `shrink` x `shrink` pixels is replaced by its mean, so that 2
            gives images of 14 x 14; a divisor of 28. 1 = as published.

    """

    shrink: Literal[1, 2, 4, 7, 14, 28] = 1

    name: ClassVar[str] = "fashion_mnist"
    source: ClassVar[str] = "Xiao, Rasul, Vollgraf 2017 (Zalando); MIT licence"

    def load(self, folder: Path | None) -> Dataset:
        """Read `fashion_mnist/fashion_mnist.npz` or, without it, the published files."""
        return load_mnist_like(folder, FASHION_FILES, FASHION_CLASS_NAMES, self.shrink)
