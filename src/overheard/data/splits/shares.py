"""A split with given label shares per client."""

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
from overheard.data.partition.schedule import normalised_shares


@final
@dataclass(frozen=True, slots=True)
class Shares(Split):
    """Client k holds the labels in the shares of row k, such as those of a published table.

    Shares become counts by largest remainders, so each count differs from share * size by less
    than 1. A pool with too few examples of a label is refused.

    Args:
        compositions: one row per client, one share per label. Rows sum to 1, or to 100 if they
            are percentages (rounded tables may differ from that by 1 %).

    """

    compositions: tuple[tuple[float, ...], ...]

    name: ClassVar[str] = "shares"
    source: ClassVar[str] = "explicit: the plan's own, or a published table's"
    draws_labels_at_random: ClassVar[bool] = True
    needs_classes: ClassVar[bool] = True
    has_fixed_shares: ClassVar[bool] = True

    def check_together(self) -> None:
        """Refuse rows that are not label shares."""
        if not self.compositions:
            raise PlanError("shares: compositions is empty: give one row per client")
        for number, row in enumerate(self.compositions):
            normalised_shares(row, f"shares: the composition of client {number}")

    def assign(
        self,
        labels: Int[Tensor, " examples"],
        users: Int[Tensor, " examples"] | None,
        sizes: Int[Tensor, " clients"],
        classes: int,
        seed: Seed,
    ) -> tuple[Rows, ...]:
        """Turn shares into counts, then draw the examples."""
        check_pool(labels, sizes, classes)
        if len(self.compositions) != len(sizes):
            raise PlanError(
                f"shares: {len(self.compositions)} compositions for {len(sizes)} clients: give "
                "one per client"
            )
        counts = []
        for number, (row, size) in enumerate(
            zip(self.compositions, sizes.tolist(), strict=True)
        ):
            if len(row) != classes:
                raise PlanError(
                    f"shares: the composition of client {number} has {len(row)} shares, the "
                    f"task has {classes} labels: give one share per label"
                )
            counts.append(apportion(normalised_shares(row, "shares"), size))
        return draw_stratified(labels, torch.stack(counts), classes, seed.child("rows"))
