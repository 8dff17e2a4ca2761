"""CIFAR-10: photographs of objects and animals, colour images of 32 x 32."""

import gzip
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
import torch

from overheard.core.errors import DataError, PlanError
from overheard.core.examples import Examples
from overheard.core.task import Task
from overheard.data.dataset import Dataset, DataSource
from overheard.data.reading.arrays import ITEM_BYTES, checked_numbers
from overheard.data.reading.fetch import RemoteFile, fetch
from overheard.data.reading.folder import find_file, placement_hint
from overheard.data.reading.images import LabelledImages, image_dataset, read_images
from overheard.disk.limits import ARRAY, refuse_large

CLASS_NAMES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)

SIDE = 32
"""Pixels along an image's edge."""

SHAPE = (SIDE, SIDE, 3)

FILES = ("cifar10/cifar10.npz", "cifar10_subset/cifar10_subset.npz")

ARCHIVE = RemoteFile(
    "cifar-10-binary.tar.gz",
    ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)

BATCH = 10_000
"""Images per file of the archive."""

FOLDER = "cifar-10-batches-bin"
"""The folder of the files in the archive."""

TAR_BLOCK = 512
"""Bytes of a header of a file in the archive; its content fills whole blocks, too."""

MAX_FILES = 100
"""The most files of an archive that are looked at; the published one has 9."""

IMAGE_BYTES = 1 + 3 * 32 * 32
"""Bytes per image in the archive: its label, then the red, green and blue pixels."""


@final
@dataclass(frozen=True, slots=True)
class Cifar10(DataSource):
    """50,000 training and 10,000 test images, or the subset in the data folder.

    Args:
        only: the classes that are kept, numbered in this order; () = all. Pixels are
            standardised by the images of all classes, so that selections are comparable.
        shrink: each block of `shrink` x `shrink` pixels is replaced by its mean, so that 2
            gives images of 16 x 16; a divisor of 32. 1 = as published.

    """

    only: tuple[str, ...] = ()
    shrink: Literal[1, 2, 4, 8, 16, 32] = 1

    name: ClassVar[str] = "cifar10"
    source: ClassVar[str] = "Krizhevsky 2009; published for research, no explicit licence"

    def check_together(self) -> None:
        """Refuse unknown and repeated classes."""
        unknown = [name for name in self.only if name not in CLASS_NAMES]
        if unknown:
            raise PlanError(
                f"cifar10: only names unknown classes {', '.join(unknown)}: take some of "
                + ", ".join(CLASS_NAMES)
            )
        if len(set(self.only)) < len(self.only) or len(self.only) == 1:
            raise PlanError(
                f"cifar10: only names {', '.join(self.only)}: name two classes or more, each "
                "once, or none to keep all"
            )

    def load(self, folder: Path | None) -> Dataset:
        """Read `cifar10/cifar10.npz`, `cifar10_subset/...`, or else the published archive."""
        dataset = image_dataset(*_read_parts(folder), CLASS_NAMES, self.shrink)
        return _select_classes(dataset, self.only) if self.only else dataset


def _read_parts(folder: Path | None) -> tuple[LabelledImages, LabelledImages]:
    """Read the training and the test images."""
    stored = find_file(folder, FILES)
    if stored is not None:
        return (
            read_images(stored, "train", SHAPE, len(CLASS_NAMES)),
            read_images(stored, "test", SHAPE, len(CLASS_NAMES)),
        )
    try:
        archive = find_file(folder, (f"cifar10/{ARCHIVE.file_name}",)) or fetch(ARCHIVE)
    except DataError as failure:
        raise DataError(f"{failure}; {placement_hint(folder, FILES)}") from failure
    train = [f"data_batch_{number}" for number in range(1, 6)]
    return read_batches(archive, train), read_batches(archive, ["test_batch"])


def _select_classes(dataset: Dataset, only: tuple[str, ...]) -> Dataset:
    """Select the examples of these classes, renumbered in this order."""
    numbers = torch.full((len(CLASS_NAMES),), -1)
    for number, name in enumerate(only):
        numbers[CLASS_NAMES.index(name)] = number

    def select(part: Examples) -> Examples:
        labels = numbers[part.labels]
        return Examples(part.inputs[labels >= 0], labels[labels >= 0])

    return Dataset(select(dataset.train), select(dataset.test), Task(dataset.task.shape, only))


def read_batches(archive: Path, batches: list[str]) -> LabelledImages:
    """Read the images of these files of the published archive, without unpacking to disk.

    Raises:
        DataError: if the archive is not the published one.

    """
    memory = ITEM_BYTES * len(batches) * BATCH * IMAGE_BYTES
    refuse_large(str(archive), memory, DataError, part=ARRAY)
    try:
        with gzip.open(archive) as stream:
            content = b"".join(_read_files(stream, batches))
    except (OSError, EOFError, ValueError, zlib.error) as failure:
        raise DataError(
            f"{archive} cannot be read as {ARCHIVE.file_name} ({failure}): get a new copy"
        ) from failure
    if len(content) != len(batches) * BATCH * IMAGE_BYTES:
        raise DataError(f"{archive} has too few images: get a new copy")
    records = np.frombuffer(content, np.uint8).reshape(-1, IMAGE_BYTES)
    labels = checked_numbers(
        archive, "labels", records[:, 0], below=len(CLASS_NAMES), examples=len(records)
    )
    pixels = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return LabelledImages(pixels, labels)


def _read_files(stream: gzip.GzipFile, batches: list[str]) -> Iterable[bytes]:
    """Return the content of these files of an unpacked archive, in this order.

    Python's own reader keeps an object for each file, and all of a header of any length.

    Raises:
        ValueError: if it has other files than the published one, or none of one of them.

    """
    found = dict[str, bytes]()
    for _ in range(MAX_FILES):
        header = stream.read(TAR_BLOCK)
        if len(header) < TAR_BLOCK or set(found) == set(batches):
            break
        size = int(header[124:135].strip(b"\0 ") or b"0", 8)
        if not 0 <= size <= BATCH * IMAGE_BYTES:
            raise ValueError(f"a file in it has {size} bytes")
        content = stream.read(size + -size % TAR_BLOCK)
        folder, _, name = header[:100].rstrip(b"\0").decode("latin-1").partition("/")
        if folder == FOLDER and name.removesuffix(".bin") in batches:
            found[name.removesuffix(".bin")] = content[:size]
    if missing := [one for one in batches if one not in found]:
        raise ValueError(f"it has no file {missing[0]}.bin")
    return (found[one] for one in batches)
