"""MNIST and Fashion-MNIST: digits and clothing, 70,000 grey images of 28 x 28 each."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

from overheard.data.dataset import Dataset, DataSource
from overheard.data.reading.fetch import RemoteFile
from overheard.data.reading.mnist_files import MnistFiles, check_shrink, load_mnist_like

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
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
)


def _remote(mirrors: tuple[str, ...], file: str, md5: str) -> RemoteFile:
    return RemoteFile(file, tuple(mirror + file for mirror in mirrors), md5)


FILES = MnistFiles(
    "mnist",
    _remote(MIRRORS, "train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
    _remote(MIRRORS, "train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
    _remote(MIRRORS, "t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
    _remote(MIRRORS, "t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
)

FASHION_FILES = MnistFiles(
    "fashion_mnist",
    _remote(FASHION_MIRRORS, "train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
    _remote(FASHION_MIRRORS, "train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
    _remote(FASHION_MIRRORS, "t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
    _remote(FASHION_MIRRORS, "t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
)


@final
@dataclass(frozen=True, slots=True)
class Mnist(DataSource):
    """The full data set in its published parts: 60,000 training and 10,000 test images.

    Args:
        shrink: each block of `shrink` x `shrink` pixels is replaced by its mean, so that 2
            gives images of 14 x 14; a divisor of 28. 1 = as published.

    """

    shrink: int = 1

    name: ClassVar[str] = "mnist"
    source: ClassVar[str] = "LeCun, Cortes, Burges 1998; commonly given as CC BY-SA 3.0"

    def __post_init__(self) -> None:
        """Refuse a shrink that does not divide an image."""
        check_shrink(self.name, self.shrink)

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

    shrink: int = 1

    name: ClassVar[str] = "fashion_mnist"
    source: ClassVar[str] = "Xiao, Rasul, Vollgraf 2017 (Zalando); MIT licence"

    def __post_init__(self) -> None:
        """Refuse a shrink that does not divide an image."""
        check_shrink(self.name, self.shrink)

    def load(self, folder: Path | None) -> Dataset:
        """Read `fashion_mnist/fashion_mnist.npz` or, without it, the published files."""
        return load_mnist_like(folder, FASHION_FILES, FASHION_CLASS_NAMES, self.shrink)
