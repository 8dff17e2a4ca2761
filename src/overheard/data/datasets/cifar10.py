"""Small photographs of things and animals, colour images of 32 x 32."""

import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

import numpy as np

from overheard.core.errors import DataError
from overheard.data.arrays import checked_numbers
from overheard.data.dataset import Dataset, DataSource
from overheard.data.fetch import Remote, fetch
from overheard.data.folder import find_file, where_to_put
from overheard.data.images import Pictures, image_dataset, read_pictures

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

SHAPE = (32, 32, 3)

PLACES = ("cifar10/cifar10.npz", "cifar10_subset/cifar10_subset.npz")

ARCHIVE = Remote(
    "cifar-10-binary.tar.gz",
    ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
    "c32a1d4ab5d03f1284b67883e8d87530",
)

BATCH = 10_000
"""Images in one file of the archive."""

RECORD = 1 + 3 * 32 * 32
"""Bytes an image takes there: its label, then the red, green and blue pixels."""


@final
@dataclass(frozen=True, slots=True)
class Cifar10(DataSource):
    """50,000 images to train and 10,000 to test, or a subset that the data folder holds."""

    name: ClassVar[str] = "cifar10"
    source: ClassVar[str] = "Krizhevsky 2009; published for research, no explicit licence"

    def load(self, folder: Path | None) -> Dataset:
        """Read `cifar10/cifar10.npz` or `cifar10_subset/...`, or else the published archive."""
        stored = find_file(folder, PLACES)
        if stored is not None:
            return image_dataset(
                read_pictures(stored, "train", SHAPE, len(CLASS_NAMES)),
                read_pictures(stored, "test", SHAPE, len(CLASS_NAMES)),
                CLASS_NAMES,
            )
        try:
            archive = find_file(folder, (f"cifar10/{ARCHIVE.file}",)) or fetch(ARCHIVE)
        except DataError as failure:
            raise DataError(f"{failure}; {where_to_put(folder, PLACES)}") from failure
        train = [f"data_batch_{number}" for number in range(1, 6)]
        return image_dataset(
            read_batches(archive, train), read_batches(archive, ["test_batch"]), CLASS_NAMES
        )


def read_batches(archive: Path, batches: list[str]) -> Pictures:
    """The images of these files of the published archive; nothing is unpacked to disk.

    Raises:
        DataError: if the archive is not the published one.

    """
    content = b""
    try:
        with tarfile.open(archive, "r:gz") as files:
            for batch in batches:
                member = files.extractfile(f"cifar-10-batches-bin/{batch}.bin")
                content += b"" if member is None else member.read(BATCH * RECORD)
    except (OSError, EOFError, KeyError, zlib.error, tarfile.TarError) as failure:
        raise DataError(
            f"{archive} cannot be read as {ARCHIVE.file} ({failure}): get a new copy"
        ) from failure
    if len(content) != len(batches) * BATCH * RECORD:
        raise DataError(f"{archive} lacks images: get a new copy")
    records = np.frombuffer(content, np.uint8).reshape(-1, RECORD)
    labels = checked_numbers(
        archive, "labels", records[:, 0], below=len(CLASS_NAMES), examples=len(records)
    )
    pixels = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return Pictures(pixels, labels)
