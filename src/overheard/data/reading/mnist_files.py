"""A reader of data sets in the form of MNIST: 28 x 28 grey images in ten classes."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from overheard.core.errors import DataError, PlanError
from overheard.data.dataset import Dataset
from overheard.data.reading.arrays import checked_numbers
from overheard.data.reading.fetch import Remote, fetch
from overheard.data.reading.folder import find_file, where_to_put
from overheard.data.reading.idx import read_idx
from overheard.data.reading.images import Pictures, image_dataset, read_pictures

SIDE = 28
"""Pixels along an image's edge."""


@dataclass(frozen=True, slots=True)
class MnistFiles:
    """The four published files of a data set.

    Args:
        name: of the data set, and of its folder in the data folder.
        train_images: like the other three, a public file.

    """

    name: str
    train_images: Remote
    train_labels: Remote
    test_images: Remote
    test_labels: Remote


def check_shrink(name: str, shrink: int) -> None:
    """Refuse a block size that does not divide the images of the data set of this name.

    Raises:
        PlanError: if it does not.

    """
    sides = [side for side in range(1, SIDE + 1) if SIDE % side == 0]
    if shrink not in sides:
        allowed = ", ".join(map(str, sides))
        raise PlanError(
            f"{name}: shrink must divide {SIDE}, got {shrink}: take one of {allowed}"
        )


def mnist_like(
    folder: Path | None, files: MnistFiles, class_names: tuple[str, ...], shrink: int = 1
) -> Dataset:
    """Read `<name>.npz` from the data folder or, without it, the four published files.

    Args:
        folder: the data folder. Published files in it are not downloaded.
        files: the published files.
        class_names: the name of each label.
        shrink: side of the blocks of pixels that are averaged; see `check_shrink`.

    Raises:
        DataError: if neither is available, or a file is damaged.

    """
    file_names = (f"{files.name}/{files.name}.npz",)
    stored = find_file(folder, file_names)
    if stored is not None:
        return image_dataset(
            read_pictures(stored, "train", (SIDE, SIDE), len(class_names)),
            read_pictures(stored, "test", (SIDE, SIDE), len(class_names)),
            class_names,
            shrink,
        )
    try:
        train = _pictures(
            folder, files.name, files.train_images, files.train_labels, len(class_names)
        )
        test = _pictures(
            folder, files.name, files.test_images, files.test_labels, len(class_names)
        )
    except DataError as failure:
        raise DataError(f"{failure}; {where_to_put(folder, file_names)}") from failure
    return image_dataset(train, test, class_names, shrink)


def _pictures(
    folder: Path | None, name: str, images: Remote, labels: Remote, classes: int
) -> Pictures:
    images_path = find_file(folder, (f"{name}/{images.file}",)) or fetch(images)
    labels_path = find_file(folder, (f"{name}/{labels.file}",)) or fetch(labels)
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
    return Pictures(pixels[..., None], numbers)
