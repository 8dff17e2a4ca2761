from pathlib import Path

import numpy as np
import pytest
import torch

from overheard.core.errors import DataError
from overheard.data.reading.images import LabelledImages, image_dataset, read_images


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
