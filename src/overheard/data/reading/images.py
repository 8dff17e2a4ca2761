"""Turns 8-bit images into inputs: channels first, standardised by the training set."""

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

BRIGHTEST = 255
"""The largest level of an 8-bit pixel."""


@dataclass(frozen=True, slots=True)
class Pictures:
    """8-bit images as files hold them, with a label each."""

    pixels: UInt8[np.ndarray, "examples height width channels"]
    labels: Int64[np.ndarray, " examples"]


def read_pictures(path: Path, part: str, shape: tuple[int, ...], classes: int) -> Pictures:
    """The images `x_<part>` and labels `y_<part>` of an `.npz` file.

    Args:
        path: the file.
        part: "train", "test" or the like.
        shape: of one image: (height, width) or (height, width, channels).
        classes: labels must lie below this.

    Raises:
        DataError: if the file holds anything else.

    """
    pixels = read_pixels(path, f"x_{part}", shape)
    labels = read_numbers(path, f"y_{part}", below=classes, examples=len(pixels))
    return Pictures(pixels.reshape(*pixels.shape[:3], -1), labels)


def image_dataset(
    train: Pictures, test: Pictures, class_names: tuple[str, ...], shrink: int = 1
) -> Dataset:
    """Both parts as a data set, each channel with mean 0 and deviation 1 over the train part.

    A pixel is taken as its level / 255, and standardised with the exact mean and deviation.

    Args:
        train: the images to learn from.
        test: the images to test on.
        class_names: what label i means.
        shrink: each block of so many by so many pixels becomes one, their mean, before all
            else; height and width must be multiples of it.

    """
    levels = [_block_sums(part.pixels, shrink) for part in (train, test)]
    table = _standard_levels(levels[0], BRIGHTEST * shrink**2)
    parts = [
        Examples(standardised(pixels, table), torch.from_numpy(part.labels))
        for pixels, part in zip(levels, (train, test), strict=True)
    ]
    return Dataset(parts[0], parts[1], Task(tuple(parts[0].inputs.shape[1:]), class_names))


def standardised(
    pixels: Integer[np.ndarray, "examples height width channels"],
    table: Float[np.ndarray, "channels levels"],
) -> Float32[Tensor, "examples channels height width"]:
    """Look each pixel up in its channel's table: there are few different ones, 256 unshrunk."""
    images = np.empty((len(pixels), pixels.shape[3], *pixels.shape[1:3]), np.float32)
    for channel, levels in enumerate(table):
        images[:, channel] = levels.astype(np.float32)[pixels[..., channel]]
    return torch.from_numpy(images)


def _block_sums(
    pixels: UInt8[np.ndarray, "examples height width channels"], side: int
) -> Integer[np.ndarray, "examples rows columns channels"]:
    """The sum of each block of side x side pixels; whole numbers, so that few are different."""
    if side == 1:
        return pixels
    examples, height, width, channels = pixels.shape
    blocks = pixels.reshape(examples, height // side, side, width // side, side, channels)
    sums: np.ndarray = blocks.sum((2, 4), dtype=np.int32)  # (examples, rows, columns, channels)
    return sums


def _standard_levels(
    pixels: Integer[np.ndarray, "examples height width channels"], brightest: int
) -> Float[np.ndarray, "channels levels"]:
    """What each level, 0 to the brightest, becomes in each channel."""
    levels = np.arange(brightest + 1) / brightest
    rows = []
    for channel in range(pixels.shape[3]):
        counts = np.bincount(pixels[..., channel].ravel(), minlength=brightest + 1)
        share = counts / counts.sum()
        mean = share @ levels
        deviation = np.sqrt(share @ (levels - mean) ** 2)
        # A channel that never varies tells nothing: it becomes 0 throughout.
        rows.append((levels - mean) / (deviation if deviation > 0 else 1))
    return np.stack(rows)
