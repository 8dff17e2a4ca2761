"""Omniglot: handwritten characters of five alphabets, with the drawer of each."""

from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, final

import torch

from overheard.core.seeds import Seed
from overheard.data.dataset import Dataset, DataSource
from overheard.data.holdout import hold_out_of_users
from overheard.data.reading.arrays import read_names, read_numbers, read_pixels
from overheard.data.reading.folder import require_file
from overheard.data.reading.images import LabelledImages, image_dataset

SHAPE = (28, 28)

HOLDOUT_SEED = Seed(2720)
"""Fixed, so that the test part does not depend on the seed of a run."""


@final
@dataclass(frozen=True, slots=True)
class OmniglotWriters(DataSource):
    """Label = character, user = drawer; a random fifth of each user's images is the test part.

    Drawers are numbered within each alphabet, so a user is a pair of alphabet and drawer.
    Times are positions in the file. The attribute of a user is the alphabet, which precedes
    the drawer's number in the user's name.
    """

    name: ClassVar[str] = "omniglot_writers"
    source: ClassVar[str] = (
        "Lake, Salakhutdinov, Tenenbaum 2015 (github.com/brendenlake/omniglot, "
        "images_background_small1, shrunk to 28 x 28); MIT licence"
    )

    def load(self, folder: Path | None) -> Dataset:
        """Read `omniglot_writers/omniglot_writers.npz`; no download in this form."""
        file_name = "omniglot_writers/omniglot_writers.npz"
        path = require_file(folder, (file_name,), self.source)
        class_names = read_names(path, "class_names")
        user_names = read_names(path, "user_names")
        pixels = read_pixels(path, "x", SHAPE)[..., None]
        labels = read_numbers(path, "y", below=len(class_names), examples=len(pixels))
        users = torch.from_numpy(
            read_numbers(path, "user", below=len(user_names), examples=len(pixels))
        )
        held_out = hold_out_of_users(users, HOLDOUT_SEED)
        test = held_out.numpy()
        dataset = image_dataset(
            LabelledImages(pixels[~test], labels[~test]),
            LabelledImages(pixels[test], labels[test]),
            class_names,
        )
        alphabets = tuple(name.partition("/")[0] for name in user_names)
        return replace(
            dataset,
            users=users[~held_out],
            user_names=user_names,
            times=(~held_out).nonzero().flatten(),
            attributes=MappingProxyType({"alphabet": alphabets}),
        )
