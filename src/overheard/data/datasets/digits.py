"""Digits: handwritten digits, 1,797 grey images of 8 x 8, without download."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset, DataSource
from overheard.data.holdout import hold_out_stratified

CLASS_NAMES = tuple("0123456789")

TEST_SIZE = 300
"""Number of test images, drawn from each digit in proportion to its frequency."""

MAX_LEVEL = 16
"""The largest grey value of a pixel."""

HOLDOUT_SEED = Seed(1797)
"""Fixed, so that the test part does not depend on the seed of a run."""


@final
@dataclass(frozen=True, slots=True)
class Digits(DataSource):
    """The images that scikit-learn ships: 1,497 for training, 300 for testing."""

    name: ClassVar[str] = "digits"
    source: ClassVar[str] = (
        "Alpaydin and Kaynak 1998, UCI Optical Recognition of Handwritten Digits (the test "
        "part), as scikit-learn ships it; CC BY 4.0"
    )

    def load(self, folder: Path | None) -> Dataset:
        """Take the images from the installed scikit-learn; the folder is not used."""
        from sklearn.datasets import load_digits

        bunch = load_digits()
        pixels = torch.from_numpy(bunch.images)[:, None] / MAX_LEVEL  # (examples, 1, 8, 8)
        labels = torch.from_numpy(bunch.target).long()
        held_out = hold_out_stratified(labels, TEST_SIZE, HOLDOUT_SEED)
        train = pixels[~held_out]
        inputs = ((pixels - train.mean()) / train.std(correction=0)).float()
        return Dataset(
            Examples(inputs[~held_out], labels[~held_out]),
            Examples(inputs[held_out], labels[held_out]),
            Task(tuple(inputs.shape[1:]), CLASS_NAMES),
        )
