"""A split in which each client holds every label about equally often."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.settings import Share
from overheard.data.draws import ROUNDING_TOLERANCE, apportion, check_availability
from overheard.data.partition.check_pool import check_pool
from overheard.data.partition.label_split import LabelSplit

UNBALANCED_HINT = "set balanced = false in the split to follow the shares of the data, or "


@final
@dataclass(frozen=True, slots=True)
class Iid(LabelSplit):
    """Each label count lies within a fluctuation around an even share of the client's size.

    Whispers of Data draws each count of a client of size s from s / C within plus or minus
    10 %. Here the C counts are drawn uniformly from that range and then adjusted, each in
    proportion to its distance from the end of the range, until they sum to s. Rounded counts
    may leave the range by less than 1. If few examples of a label are left, the upper end of
    its range is lowered, so that every later client still gets its lower end.

    If the even share of a label is less than one example, or too few examples are left, a
    client that follows the shares of the pool gets a random sample of what is left.

    Args:
        fluctuation: half the width of the range, relative to the even share (0..1).
        balanced: True = the even share is s / C for all labels, as in the paper. False = it
            follows the label shares of the pool. In a plan, False is the default for data of
            your own, and True for others.

    """

    fluctuation: Share = 0.1
    balanced: bool = True

    name: ClassVar[str] = "iid"
    source: ClassVar[str] = (
        "Ma et al., Whispers of Data, virtual clients and experiments: IID scenario"
    )
    draws_labels_at_random: ClassVar[bool] = True
    is_exchangeable: ClassVar[bool] = True

    def draw_label_counts(
        self,
        labels: Int[Tensor, " examples"],
        sizes: Int[Tensor, " clients"],
        classes: int,
        seed: Seed,
    ) -> Int[Tensor, "clients classes"]:
        """Draw the counts client by client."""
        check_pool(labels, sizes, classes)
        available = labels.bincount(minlength=classes)
        weights = torch.ones(classes) if self.balanced else available
        shares = weights.double() / weights.sum()
        even = sizes[:, None] * shares  # (clients, classes)
        lowest = (even * (1 - self.fluctuation) - ROUNDING_TOLERANCE).ceil()
        if not self.balanced:
            # Rounded up, more may be reserved than the pool has.
            lowest = lowest.minimum(even)
        reserved = lowest.sum(0) - lowest.cumsum(0)  # for the clients after each
        left = available.double()
        counts = []
        for number, size in enumerate(sizes.tolist()):
            low = even[number] * (1 - self.fluctuation)
            high = (even[number] * (1 + self.fluctuation)).minimum(left - reserved[number])
            is_short = (
                bool((high < low - ROUNDING_TOLERANCE).any())
                or float(high.sum()) < size - ROUNDING_TOLERANCE
            )
            is_rare = bool(((even[number] > 0) & (even[number] < 1)).any())
            if not self.balanced and (is_short or is_rare):
                generator = seed.child("counts", number).numpy()
                drawn = generator.multivariate_hypergeometric(left.long().numpy(), size)
                counts.append(torch.from_numpy(drawn))
                left = left - counts[-1]
                continue
            if is_short:
                # The totals that all clients need show best which label is scarce.
                needed = even.sum(0).round().long()
                check_availability(available, needed, classes, UNBALANCED_HINT)
                raise PlanError(
                    f"iid: too few examples are left for client {number}: take fewer or "
                    "smaller clients, or a larger fluctuation"
                )
            draws = torch.rand(
                classes, generator=seed.child("counts", number).generator(), dtype=torch.float64
            )
            count = apportion(_adjust_to_sum(low + draws * (high - low), low, high, size), size)
            left = left - count
            counts.append(count)
        return torch.stack(counts)


def _adjust_to_sum(
    values: Float[Tensor, " classes"],
    low: Float[Tensor, " classes"],
    high: Float[Tensor, " classes"],
    total: int,
) -> Float[Tensor, " classes"]:
    """Shift all values up or down within their ranges until they sum to the total."""
    missing = total - float(values.sum())
    room = (high - values) if missing > 0 else (values - low)
    available = float(room.sum())
    return values + room * (missing / available) if available > 0 else values
