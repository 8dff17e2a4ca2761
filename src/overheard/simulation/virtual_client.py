"""One virtual client, and its data, drawn before training."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.errors import NeedsError, PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Rows, Split
from overheard.simulation.auxiliary_split import Quarters
from overheard.simulation.client_sizes import draw_size


@final
@dataclass(frozen=True, slots=True)
class VirtualClient:
    """A virtual client, in plain numbers, so that its repr describes it fully.

    Args:
        number: determines all its draws.
        half: the half of the auxiliary examples on which it trains, 0 or 1.
        recipe: index of the recipe that it follows.
        counts: the number of its examples of each label.
        resampled: whether examples are drawn with replacement; see `core.knowledge.Prior`.
        quarter: the quarter of this half on which it trains, 0 or 1; None = the whole half.

    """

    number: int
    half: int
    recipe: int
    counts: tuple[int, ...]
    resampled: bool = False
    quarter: int | None = None

    @property
    def name(self) -> str:
        """Return the name of its party, which also determines the order of its batches."""
        return f"virtual/{self.number}"

    def draw_rows(
        self,
        labels: Int[Tensor, " examples"],
        quarters: Quarters,
        seed: Seed,
    ) -> Rows:
        """Return the rows of the pool that it holds, the same in every round.

        Examples of each label are in random order. Unless `resampled`, none is repeated before
        all of its half or quarter are used.

        Args:
            labels: the label of each row of the pool.
            quarters: the rows of the pool in the two quarters of each half.
            seed: the seed of the simulation.

        """
        of_half = quarters[self.half]
        own_rows = torch.cat(of_half) if self.quarter is None else of_half[self.quarter]
        shuffle = self.client_seed(seed).child("rows").generator()
        rows = own_rows[torch.randperm(len(own_rows), generator=shuffle)]
        rows = rows[labels[rows].argsort(stable=True)]
        available = labels[rows].bincount(minlength=len(self.counts))
        counts = torch.tensor(self.counts)
        label = torch.arange(len(counts)).repeat_interleave(counts)
        if self.resampled:
            draws = self.client_seed(seed).child("resampling").generator()
            position = (torch.rand(len(label), generator=draws) * available[label]).long()
        else:
            position = torch.arange(len(label)) - (counts.cumsum(0) - counts)[label]
        return rows[(available.cumsum(0) - available)[label] + position % available[label]]

    def client_seed(self, seed: Seed) -> Seed:
        """Return its seed, from the seed of the simulation."""
        return seed.child("client", self.number)


def draw_counts(
    number: int, splits: Sequence[Split], sizes: tuple[int, int], classes: int, seed: Seed
) -> tuple[int, ...]:
    """Draw the label counts of the virtual client with this number.

    One of the splits, all equally likely, assigns examples to this client alone, from a pool
    with enough examples of every label.

    Raises:
        NeedsError: if the split cannot be drawn from in this way, such as for a client with
            fewer examples than the labels that the split gives it.

    """
    client_seed = seed.child("client", number)
    size = draw_size(sizes, client_seed.child("size"))
    index = int(client_seed.child("split").numpy().integers(len(splits)))
    labels = torch.arange(size * classes) % classes
    split_seed = client_seed.child("shares")
    try:
        (rows,) = splits[index].assign(labels, None, torch.tensor([size]), classes, split_seed)
    except PlanError as error:
        # Sizes are those that messages of the run state, so the plan alone cannot be refused.
        raise NeedsError(f"virtual clients need another split or size: {error}") from error
    return tuple(labels[rows].bincount(minlength=classes).tolist())
