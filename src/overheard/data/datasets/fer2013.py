"""FER2013: faces that show an emotion, grey images of 48 x 48."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

from overheard.data.dataset import Dataset, DataSource
from overheard.data.reading.folder import require_file
from overheard.data.reading.images import image_dataset, read_images

CLASS_NAMES = ("angry", "disgust", "fear", "happy", "sad", "surprise", "neutral")

SHAPE = (48, 48)

FILES = ("fer2013/fer2013_subset.npz", "fer2013/fer2013.npz")
"""Paths in the data folder: the first that exists is read."""


@final
@dataclass(frozen=True, slots=True)
class Fer2013(DataSource):
    """Kaggle's training images and, for testing, its private test images, or a subset of both.

    Some images occur twice: with two labels, or both for training and for testing. No such
    image becomes an auxiliary example, but clients may hold both copies.
    """

    name: ClassVar[str] = "fer2013"
    source: ClassVar[str] = (
        "Goodfellow et al. 2013, ICML challenge in representation learning (Kaggle, "
        "'Challenges in Representation Learning: Facial Expression Recognition'); research "
        "use, no explicit licence; faces of real people"
    )

    def load(self, folder: Path | None) -> Dataset:
        """Read the subset if the data folder has it, otherwise the whole set; no download."""
        path = require_file(folder, FILES, self.source)
        return image_dataset(
            read_images(path, "train", SHAPE, len(CLASS_NAMES)),
            read_images(path, "test", SHAPE, len(CLASS_NAMES)),
            CLASS_NAMES,
        )
