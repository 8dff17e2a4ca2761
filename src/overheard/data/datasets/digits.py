"""Digits: handwritten digits, 1,797 grey images of 8 x 8, without download."""

import gzip
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset, DataSource
from overheard.data.holdout import hold_out_stratified

CLASS_NAMES = tuple("0123456789")

TEST_SIZE = 300
"""Number of test images, drawn from each digit in proportion to its frequency."""

SIDE = 8
"""Rows and columns of an image."""

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
        table = _read_table()
        pixels = table[:, :-1].reshape(-1, 1, SIDE, SIDE) / MAX_LEVEL
        labels = table[:, -1].long()
        held_out = hold_out_stratified(labels, TEST_SIZE, HOLDOUT_SEED)
        train = pixels[~held_out]
        inputs = ((pixels - train.mean()) / train.std(correction=0)).float()
        return Dataset(
            Examples(inputs[~held_out], labels[~held_out]),
            Examples(inputs[held_out], labels[held_out]),
            Task(tuple(inputs.shape[1:]), CLASS_NAMES),
        )


@cache
def _read_table() -> Float[Tensor, "examples pixels_and_label"]:
    """Return the table of scikit-learn, whose last column is the digit, in float64.

    Its file is read without importing scikit-learn, which takes over a second. Its numbers are
    kept, a megabyte, as reading them takes most of the time of loading the data.
    """
    package = find_spec("sklearn")
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
    with gzip.open(path, "rt") as file:
        return torch.from_numpy(np.loadtxt(file, delimiter=","))
