"""Reading images."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from overheard.core.errors import DataError
from overheard.data.datasets.mnist import FashionMnist, Mnist
from overheard.data.reading.folder import FOLDER_VARIABLE, data_folder
from overheard.data.reading.images import LabelledImages, image_dataset, read_images
from overheard.data.reading.mnist_files import read_idx
from overheard.disk.limits import VARIABLE


def test_each_channel_is_standardised_by_the_training_part() -> None:
    # Channel 0: levels 0 and 255, mean 1/2, deviation 1/2: -1 and 1. Channel 1 never varies.
    train = LabelledImages(
        np.array([[[[0, 7]]], [[[255, 7]]]], np.uint8), np.array([0, 1], np.int64)
    )
    test = LabelledImages(np.array([[[[51, 7]]]], np.uint8), np.array([1], np.int64))
    dataset = image_dataset(train, test, ("a", "b"))
    assert dataset.task.shape == (2, 1, 1)
    assert torch.allclose(dataset.train.inputs.flatten(), torch.tensor([-1.0, 0.0, 1.0, 0.0]))
    # 51 / 255 = 0.2 is 0.3 below the mean: -0.6.
    assert torch.allclose(dataset.test.inputs.flatten(), torch.tensor([-0.6, 0.0]))


def test_blocks_are_averaged_before_pixels_are_standardised() -> None:
    # Blocks of 2 x 2: all 0, all 255, (255, 0, 0, 255) and (0, 255, 255, 0), whose means as
    # shares of 255 are 0, 1, 1/2, 1/2: mean 1/2, deviation sqrt(1/8).
    train = np.array(
        [[0, 0, 255, 255], [0, 0, 255, 255], [255, 0, 0, 255], [0, 255, 255, 0]], np.uint8
    )
    # (0, 51, 102, 51) has mean 51, a share of 0.2; the others are all 0.
    test = np.zeros((4, 4), np.uint8)
    test[2:, :2] = [[0, 51], [102, 51]]
    label = np.array([0], np.int64)
    dataset = image_dataset(
        LabelledImages(train[None, ..., None], label),
        LabelledImages(test[None, ..., None], label),
        ("a", "b"),
        shrink=2,
    )
    assert dataset.task.shape == (1, 2, 2)
    end = 8**0.5 / 2
    assert torch.allclose(dataset.train.inputs[0, 0], torch.tensor([[-end, end], [0.0, 0.0]]))
    # (0.2 - 0.5) / sqrt(1/8) = -0.3 sqrt(8).
    other = -0.3 * 8**0.5
    assert torch.allclose(
        dataset.test.inputs[0, 0], torch.tensor([[-end, -end], [other, -end]])
    )


def test_channels_of_a_block_are_not_mixed() -> None:
    # Colour 0 is dark in the first image and bright in the second; colour 1 is 7 in both.
    pixels = np.full((2, 2, 2, 2), 7, np.uint8)
    pixels[0, ..., 0], pixels[1, ..., 0] = 0, 255
    part = LabelledImages(pixels, np.array([0, 1], np.int64))
    inputs = image_dataset(part, part, ("a", "b"), shrink=2).train.inputs
    assert inputs.shape == (2, 2, 1, 1)
    assert inputs.flatten().tolist() == [-1.0, 0.0, 1.0, 0.0]


def test_refuses_an_image_without_label(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz", x_train=np.zeros((3, 2, 2), np.uint8), y_train=np.zeros(2, int)
    )
    with pytest.raises(DataError, match="'y_train' must be 3 whole numbers"):
        read_images(tmp_path / "a.npz", "train", (2, 2), 10)


Write = Callable[[Path, np.ndarray], Path]


def test_refuses_a_file_with_another_number_of_axes(tmp_path: Path, write_idx: Write) -> None:
    path = write_idx(tmp_path / "labels.gz", np.arange(20))
    with pytest.raises(DataError, match=r"labels.gz is not an IDX file of bytes with 3 axes"):
        read_idx(path, axes=3)


@pytest.mark.parametrize(
    ("length", "content"), [(5, b"1234"), (3, b"1234"), (2**22, b"1234"), (2**20, b"")]
)
def test_refuses_a_file_whose_length_differs_from_its_header(
    tmp_path: Path, length: int, content: bytes
) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(struct.pack(">2I", 0x0801, length) + content))
    with pytest.raises(DataError, match=r"a.gz .* get a new copy"):
        read_idx(path, axes=1)


def test_counts_the_memory_of_converted_pixels(
    tmp_path: Path, write_idx: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_idx(tmp_path / "a.gz", np.arange(200))
    monkeypatch.setenv(VARIABLE, "1599")
    with pytest.raises(DataError, match=r"a.gz takes 1600 bytes .* --max-unpacked 1GB"):
        read_idx(path, axes=1)
    monkeypatch.setenv(VARIABLE, "1600")
    assert read_idx(path, axes=1).tolist() == list(range(200))


def test_refuses_truncated_files_and_other_formats(tmp_path: Path, write_idx: Write) -> None:
    whole = write_idx(tmp_path / "a.gz", np.arange(100)).read_bytes()
    for number, content in enumerate((b"", b"no gzip", whole[:5], whole[:-20])):
        path = tmp_path / f"{number}.gz"
        path.write_bytes(content)
        with pytest.raises(DataError, match=f"{number}.gz cannot be read as gzipped IDX"):
            read_idx(path, axes=1)


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


def test_a_given_folder_takes_precedence_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert data_folder(None) == tmp_path
    (tmp_path / "other").mkdir()
    assert data_folder(tmp_path / "other") == tmp_path / "other"


def test_a_missing_folder_is_refused_with_the_setting_to_correct(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match="correct --data"):
        data_folder(tmp_path / "none")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "none"))
    with pytest.raises(DataError, match=f"correct the environment variable {FOLDER_VARIABLE}"):
        data_folder(None)
