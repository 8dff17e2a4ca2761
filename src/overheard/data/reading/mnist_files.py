"""A reader of data sets in the form of MNIST: 28 x 28 grey images in ten classes."""

import gzip
import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from overheard.core.errors import DataError
from overheard.data.dataset import Dataset
from overheard.data.reading.arrays import ITEM_BYTES, checked_numbers
from overheard.data.reading.fetch import RemoteFile, fetch
from overheard.data.reading.folder import find_file, placement_hint
from overheard.data.reading.images import LabelledImages, image_dataset, read_images
from overheard.disk.limits import ARRAY, refuse_large

MAGIC = 0x0800
"""Two zero bytes, then 8 for unsigned bytes; the number of axes is added."""


SIDE = 28
"""Pixels along an image's edge."""


@dataclass(frozen=True, slots=True)
class MnistFiles:
    """The four published files of a data set.

    Args:
        name: the name of the data set, and of its folder in the data folder.
        train_images: like the other three, a public file.

    """

    name: str
    train_images: RemoteFile
    train_labels: RemoteFile
    test_images: RemoteFile
    test_labels: RemoteFile


def load_mnist_like(
    folder: Path | None, files: MnistFiles, class_names: tuple[str, ...], shrink: int = 1
) -> Dataset:
    """Read `<name>.npz` from the data folder or, without it, the four published files.

    Args:
        folder: the data folder. Published files in it are not downloaded.
        files: the published files.
        class_names: the name of each label.
        shrink: side of the blocks of pixels that are averaged; a divisor of the images' side.

    Raises:
        DataError: if neither is available, or a file is damaged.

    """
    file_names = (f"{files.name}/{files.name}.npz",)
    stored = find_file(folder, file_names)
    if stored is not None:
        return image_dataset(
            read_images(stored, "train", (SIDE, SIDE), len(class_names)),
            read_images(stored, "test", (SIDE, SIDE), len(class_names)),
            class_names,
            shrink,
        )
    try:
        train = _read_part(
            folder, files.name, files.train_images, files.train_labels, len(class_names)
        )
        test = _read_part(
            folder, files.name, files.test_images, files.test_labels, len(class_names)
        )
    except DataError as failure:
        raise DataError(f"{failure}; {placement_hint(folder, file_names)}") from failure
    return image_dataset(train, test, class_names, shrink)


def _read_part(
    folder: Path | None, name: str, images: RemoteFile, labels: RemoteFile, classes: int
) -> LabelledImages:
    images_path = find_file(folder, (f"{name}/{images.file_name}",)) or fetch(images)
    labels_path = find_file(folder, (f"{name}/{labels.file_name}",)) or fetch(labels)
    pixels = read_idx(images_path, axes=3)
    if pixels.shape[1:] != (SIDE, SIDE) or not len(pixels):
        raise DataError(f"{images_path} must hold {SIDE} x {SIDE} images: get a new copy")
    numbers = checked_numbers(
        labels_path,
        "labels",
        read_idx(labels_path, axes=1).astype(np.int64),
        below=classes,
        examples=len(pixels),
    )
    return LabelledImages(pixels[..., None], numbers)


def read_idx(path: Path, axes: int) -> UInt8[np.ndarray, "..."]:
    """Read a gzipped IDX file of bytes with this number of axes.

    The file has 4 bytes magic, a big-endian length of 4 bytes per axis, then the numbers.

    Raises:
        DataError: if it is no such file, or its length differs from its header.

    """
    try:
        with gzip.open(path) as stream:
            (magic, *shape) = struct.unpack(f">{1 + axes}I", stream.read(4 + 4 * axes))
            length = math.prod(shape)
            if magic != MAGIC + axes:
                raise DataError(
                    f"{path} is not an IDX file of bytes with {axes} axes: get a new copy"
                )
            refuse_large(str(path), ITEM_BYTES * length, DataError, part=ARRAY)
            refuse_large(str(path), length, DataError, part=ARRAY, packed=path.stat().st_size)
            # One more byte than the header says is enough to see that the file is too long.
            content = stream.read(length + 1)
    except (OSError, EOFError, zlib.error, struct.error) as failure:
        raise DataError(
            f"{path} cannot be read as gzipped IDX ({failure}): get a new copy"
        ) from failure
    if len(content) != length:
        raise DataError(f"{path} does not have the length in its header: get a new copy")
    return np.frombuffer(content, np.uint8).reshape(shape)
