"""Users who differ by their label shares alone, with a large public background."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

import torch

from overheard.core.seeds import Seed
from overheard.data.dataset import Dataset, DataSource
from overheard.data.datasets.fashion_mnist import FashionMnist
from overheard.data.splits.dirichlet import Dirichlet

SHRINK = 2
"""Images of 14 x 14 pixels."""


@final
@dataclass(frozen=True, slots=True)
class LabelSkewedUsers(DataSource):
    """Fashion-MNIST, shared out among made-up users; all other images are the background.

    Users are as in the paper of `mm_aug` (Orekondy et al. 2018) in one respect: what sets them
    apart is which kinds of objects they have. Nothing else sets these users apart.

    Args:
        concentration: of the Dirichlet distribution of each user's label shares; the larger,
            the more alike users are.
        users: number of users.
        examples: examples of each user, prior and private ones together.
        seed: seed of the shares and of the choice of images.

    """

    concentration: float
    users: int
    examples: int
    seed: int

    name: ClassVar[str] = "label_skewed_users"
    source: ClassVar[str] = FashionMnist.source

    def load(self, folder: Path | None) -> Dataset:
        """Read Fashion-MNIST and share out a part of its training images."""
        base = FashionMnist(SHRINK).load(folder)
        labels = base.train.labels
        sizes = torch.full((self.users,), self.examples)
        split = Dirichlet(self.concentration)
        rows = split.assign(labels, None, sizes, base.task.classes, Seed(self.seed))
        is_public = torch.ones(len(labels), dtype=torch.bool)
        is_public[torch.cat(rows)] = False
        return Dataset(
            base.train.take(torch.cat(rows)),
            base.test,
            base.task,
            users=torch.arange(self.users).repeat_interleave(self.examples),
            background=base.train.take(is_public.nonzero().flatten()),
        )
