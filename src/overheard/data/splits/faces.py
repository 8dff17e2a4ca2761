"""A split in which each client holds a random subset of the labels, in random shares."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Rows, Split
from overheard.data.draws import apportion, draw_stratified
from overheard.data.partition.check_pool import check_pool

MAX_ATTEMPTS = 100
"""Draws per client to find labels and shares for which the pool still has enough examples."""


@final
@dataclass(frozen=True, slots=True)
class Faces(Split):
    """Each client gets a random number of random labels, in uniformly drawn shares.

    The number of labels is uniform in 1 to C, and a client holds at least one example of each
    of its labels. Their shares are the gaps between uniform cut points of the unit interval,
    which is a flat Dirichlet distribution on that face of the simplex. Gu and Bai cut at whole
    numbers, so that two cuts may coincide and leave out a label. They also let the number of
    labels cycle through 1 to C.
    """

    name: ClassVar[str] = "faces"
    source: ClassVar[str] = "Gu and Bai 2023 (LDIA, JISA 74, 103475): shadow data sets"
    draws_labels_at_random: ClassVar[bool] = True
    needs_classes: ClassVar[bool] = True

    def assign(
        self,
        labels: Int[Tensor, " examples"],
        users: Int[Tensor, " examples"] | None,
        sizes: Int[Tensor, " clients"],
        classes: int,
        seed: Seed,
    ) -> tuple[Rows, ...]:
        """Draw labels and shares client by client, then the examples."""
        check_pool(labels, sizes, classes)
        left = labels.bincount(minlength=classes)
        counts = []
        for number, size in enumerate(sizes.tolist()):
            generator = seed.child("face", number).generator()
            for _ in range(MAX_ATTEMPTS):
                count = _counts(size, classes, generator)
                if bool((count <= left).all()):
                    break
            else:
                raise PlanError(
                    f"faces: too few examples are left for client {number} of {size} examples "
                    f"(by label: {left.tolist()}): take fewer or smaller clients"
                )
            left = left - count
            counts.append(count)
        return draw_stratified(labels, torch.stack(counts), classes, seed.child("rows"))


def _counts(size: int, classes: int, generator: torch.Generator) -> Int[Tensor, " classes"]:
    label_count = int(torch.randint(1, min(classes, size) + 1, (), generator=generator))
    chosen = torch.randperm(classes, generator=generator)[:label_count]
    cuts = torch.rand(label_count - 1, generator=generator, dtype=torch.float64).sort().values
    ends = torch.cat((cuts.new_zeros(1), cuts, cuts.new_ones(1)))
    counts = torch.zeros(classes, dtype=torch.int64)
    counts[chosen] = 1 + apportion(ends.diff(), size - label_count)
    return counts
