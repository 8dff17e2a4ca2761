"""Conversion of 8-bit images to inputs: channels first, standardised by the training set."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Float32, Int64, Integer, UInt8
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.reading.arrays import read_numbers, read_pixels

MAX_LEVEL = 255
"""The largest value of an 8-bit pixel."""


@dataclass(frozen=True, slots=True)
class LabelledImages:
    """8-bit images as in a file, and their labels."""

    pixels: UInt8[np.ndarray, "examples height width channels"]
    labels: Int64[np.ndarray, " examples"]


def read_images(path: Path, part: str, shape: tuple[int, ...], classes: int) -> LabelledImages:
    """Read the images `x_<part>` and labels `y_<part>` of an `.npz` file.

    Args:
        path: the file.
        part: such as "train" or "test".
        shape: the shape of one image: (height, width) or (height, width, channels).
        classes: labels must lie below this.

    Raises:
        DataError: if the images or labels are missing or have another form.

    """
    pixels = read_pixels(path, f"x_{part}", shape)
    labels = read_numbers(path, f"y_{part}", below=classes, examples=len(pixels))
    return LabelledImages(pixels.reshape(*pixels.shape[:3], -1), labels)


def image_dataset(
    train: LabelledImages, test: LabelledImages, class_names: tuple[str, ...], shrink: int = 1
) -> Dataset:
    """Build a data set whose channels have mean 0 and deviation 1 over the training part.

    Pixels are divided by 255, and standardised with the exact mean and deviation.

    Args:
        train: training images.
        test: test images.
        class_names: the name of each label.
        shrink: first, each block of `shrink` x `shrink` pixels is replaced by its mean. Height
            and width must be multiples of it.

    """
    levels = [_block_sums(part.pixels, shrink) for part in (train, test)]
    table = _standard_levels(levels[0], MAX_LEVEL * shrink**2)
    parts = [
        Examples(standardise_images(pixels, table), torch.from_numpy(part.labels))
        for pixels, part in zip(levels, (train, test), strict=True)
    ]
    return Dataset(parts[0], parts[1], Task(tuple(parts[0].inputs.shape[1:]), class_names))


def standardise_images(
    pixels: Integer[np.ndarray, "examples height width channels"],
    table: Float[np.ndarray, "channels levels"],
) -> Float32[Tensor, "examples channels height width"]:
    """Look up each pixel in its channel's table; there are few levels (256 if not shrunk)."""
    images = np.empty((len(pixels), pixels.shape[3], *pixels.shape[1:3]), np.float32)
    for channel, levels in enumerate(table):
        images[:, channel] = levels.astype(np.float32)[pixels[..., channel]]
    return torch.from_numpy(images)


def _block_sums(
    pixels: UInt8[np.ndarray, "examples height width channels"], side: int
) -> Integer[np.ndarray, "examples rows columns channels"]:
    """Return the sum of each block of `side` x `side` pixels, a whole number."""
    if side == 1:
        return pixels
    examples, height, width, channels = pixels.shape
    blocks = pixels.reshape(examples, height // side, side, width // side, side, channels)
    sums: np.ndarray = blocks.sum((2, 4), dtype=np.int32)  # (examples, rows, columns, channels)
    return sums


def _standard_levels(
    pixels: Integer[np.ndarray, "examples height width channels"], brightest: int
) -> Float[np.ndarray, "channels levels"]:
    """Return the standardised value of each level, 0 to the brightest, in each channel."""
    levels = np.arange(brightest + 1) / brightest
    rows = []
    for channel in range(pixels.shape[3]):
        counts = np.bincount(pixels[..., channel].ravel(), minlength=brightest + 1)
        share = counts / counts.sum()
        mean = share @ levels
        deviation = np.sqrt(share @ (levels - mean) ** 2)
        # A constant channel becomes 0.
        rows.append((levels - mean) / (deviation if deviation > 0 else 1))
    return np.stack(rows)
