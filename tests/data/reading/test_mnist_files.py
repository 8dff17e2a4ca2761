from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from overheard.core.errors import DataError
from overheard.data.datasets.mnist import FashionMnist, Mnist

Write = Callable[[Path, np.ndarray], Path]

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 28, 28), dtype=np.uint8)
LABELS = np.arange(20, dtype=np.uint8) % 10


def write_published_files(folder: Path, write_idx: Write, labels: np.ndarray = LABELS) -> None:
    for part in ("train", "t10k"):
        write_idx(folder / "mnist" / f"{part}-images-idx3-ubyte.gz", IMAGES)
        write_idx(folder / "mnist" / f"{part}-labels-idx1-ubyte.gz", labels)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("shrink", [1, 2, 28])
def test_the_published_files_and_the_npz_give_the_same(
    tmp_path: Path, write_idx: Write, shrink: int
) -> None:
    write_published_files(tmp_path / "idx", write_idx)
    stored = tmp_path / "npz" / "mnist" / "mnist.npz"
    stored.parent.mkdir(parents=True)
    labels = LABELS.astype(np.int64)
    np.savez(stored, x_train=IMAGES, y_train=labels, x_test=IMAGES, y_test=labels)
    source = Mnist(shrink)
    one, other = source.load(tmp_path / "idx"), source.load(tmp_path / "npz")
    assert one.task.shape == (1, 28 // shrink, 28 // shrink)
    assert one.train.inputs.equal(other.train.inputs)
    assert one.test.labels.equal(other.test.labels)
    assert one.task == other.task


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("labels", [LABELS[:-1], LABELS + 1])
def test_refuses_labels_that_do_not_fit_the_images(
    tmp_path: Path, write_idx: Write, labels: np.ndarray
) -> None:
    write_published_files(tmp_path, write_idx, labels)
    with pytest.raises(DataError, match=r"train-labels-idx1-ubyte\.gz: 'labels' must"):
        Mnist().load(tmp_path)


@pytest.mark.usefixtures("offline")
def test_refuses_images_of_another_size(tmp_path: Path, write_idx: Write) -> None:
    write_published_files(tmp_path, write_idx)
    write_idx(tmp_path / "mnist" / "train-images-idx3-ubyte.gz", IMAGES[:, :20])
    with pytest.raises(DataError, match="must hold 28 x 28 images"):
        Mnist().load(tmp_path)


@pytest.mark.usefixtures("offline")
def test_fashion_mnist_shrinks_as_mnist_does(tmp_path: Path) -> None:
    labels = LABELS.astype(np.int64)
    for name in ("mnist", "fashion_mnist"):
        (tmp_path / name).mkdir()
        np.savez(
            tmp_path / name / f"{name}.npz",
            x_train=IMAGES,
            y_train=labels,
            x_test=IMAGES,
            y_test=labels,
        )
    digits, clothes = Mnist(4).load(tmp_path), FashionMnist(4).load(tmp_path)
    assert digits.train.inputs.equal(clothes.train.inputs)
    assert clothes.task.shape == (1, 7, 7)
