"""One virtual client: what it holds, drawn before anything is trained."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.core.split import Rows, Split
from overheard.simulation.sizes import draw_size


@final
@dataclass(frozen=True, slots=True)
class VirtualClient:
    """What a virtual client holds; plain numbers, so that its repr is its record.

    Args:
        number: on which all of its draws hang.
        half: of the auxiliary examples, 0 or 1, that it learns from.
        recipe: index of the recipe that it follows.
        counts: how many examples of each label it holds.
        resampled: whether it draws them with replacement: see `core.prior.Prior`.

    """

    number: int
    half: int
    recipe: int
    counts: tuple[int, ...]
    resampled: bool = False

    @property
    def name(self) -> str:
        """The party that it plays, and the name on which the order of its batches hangs."""
        return f"virtual/{self.number}"

    def rows(
        self,
        labels: Int[Tensor, " examples"],
        halves: tuple[Rows, Rows],
        seed: Seed,
    ) -> Rows:
        """The rows of the pool that it holds, the same in every round.

        Of each label in random order, none twice before all of its half were taken once, or
        `resampled`.
        """
        half = halves[self.half]
        shuffle = self.seed(seed).child("rows").generator()
        mine = half[torch.randperm(len(half), generator=shuffle)]
        mine = mine[labels[mine].argsort(stable=True)]
        there = labels[mine].bincount(minlength=len(self.counts))
        wanted = torch.tensor(self.counts)
        label = torch.arange(len(wanted)).repeat_interleave(wanted)
        if self.resampled:
            draws = self.seed(seed).child("resampling").generator()
            place = (torch.rand(len(label), generator=draws) * there[label]).long()
        else:
            place = torch.arange(len(label)) - (wanted.cumsum(0) - wanted)[label]
        return mine[(there.cumsum(0) - there)[label] + place % there[label]]

    def seed(self, seed: Seed) -> Seed:
        """Where its own draws begin, below that of the bank."""
        return seed.child("client", self.number)


def draw_counts(
    number: int, splits: Sequence[Split], sizes: tuple[int, int], classes: int, seed: Seed
) -> tuple[int, ...]:
    """How many examples of each label the virtual client with this number holds.

    One of the splits, each as likely as the others, deals to it alone from a pool in which it
    finds whatever it may want.

    Raises:
        PlanError: if the split cannot deal so.

    """
    own = seed.child("client", number)
    size = draw_size(sizes, own.child("size"))
    chosen = int(own.child("split").numpy().integers(len(splits)))
    labels = torch.arange(size * classes) % classes
    (rows,) = splits[chosen].assign(
        labels, None, torch.tensor([size]), classes, own.child("shares")
    )
    return tuple(labels[rows].bincount(minlength=classes).tolist())
