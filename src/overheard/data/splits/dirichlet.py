"""A split in which each client's label shares are drawn from a Dirichlet distribution."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import numpy as np
import torch
from annotated_types import Gt
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.data.draws import apportion, apportion_array
from overheard.data.partition.check_pool import check_pool
from overheard.data.partition.label_split import LabelSplit

MAX_ATTEMPTS = 100
"""Draws per client to find shares for which the pool still has enough examples."""

ATTEMPTS_AT_ONCE = 10
"""Draws that numpy makes in one call; they are the same as those of single calls."""

ROUNDED_UP = 1.001
"""A count is never this much below its exact share, with room for floating-point errors."""


@final
@dataclass(frozen=True, slots=True)
class Dirichlet(LabelSplit):
    """Client k holds the labels in shares p_k ~ Dirichlet(alpha, ..., alpha).

    Shares become counts by largest remainders, client by client. If the pool has too few
    examples left for the drawn shares, they are drawn again. After a hundred draws, missing
    examples of a label are replaced by the client's other labels, then by any label. So shares
    follow the distribution while the pool is large enough. In a pool that is nearly used up,
    the last clients get what is left, and are more alike than alpha says.

    Args:
        alpha: 0.1 = one or two labels per client, 1 = all shares equally likely, 100 = nearly
            equal shares.

    """

    alpha: Annotated[float, Gt(0)] = 0.5

    name: ClassVar[str] = "dirichlet"
    source: ClassVar[str] = (
        "Hsu, Qi, Brown 2019 (arXiv:1909.06335), section 3; Ma et al., Whispers of Data "
        "(alpha 0.5, 1, 2)"
    )
    draws_labels_at_random: ClassVar[bool] = True
    needs_classes: ClassVar[bool] = True

    def draw_label_counts(
        self,
        labels: Int[Tensor, " examples"],
        sizes: Int[Tensor, " clients"],
        classes: int,
        seed: Seed,
    ) -> Int[Tensor, "clients classes"]:
        """Draw the shares client by client."""
        check_pool(labels, sizes, classes)
        left, counts = labels.bincount(minlength=classes).numpy(), []
        alphas = np.full(classes, self.alpha)
        for number, size in enumerate(sizes.tolist()):
            generator = seed.child("shares", number).numpy()
            count = _draw_counts(left, size, alphas, generator)
            left = left - count
            counts.append(count)
        return torch.from_numpy(np.stack(counts))


def _draw_counts(
    left: Int[np.ndarray, " classes"],
    size: int,
    alphas: Float[np.ndarray, " classes"],
    generator: np.random.Generator,
) -> Int[np.ndarray, " classes"]:
    """Draw the label counts of one client from what is left of each label."""
    most, drawn = left + ROUNDED_UP, np.zeros(0)
    for _ in range(MAX_ATTEMPTS // ATTEMPTS_AT_ONCE):
        drawn = generator.dirichlet(alphas, ATTEMPTS_AT_ONCE)
        # Most draws ask for too much of a label, and this shows it in a tenth of the time.
        for shares in drawn[(drawn * size <= most).all(1)]:
            count = apportion_array(shares, size)
            if (count <= left).all():
                return count
    shares, rest = torch.from_numpy(drawn[-1]), torch.from_numpy(left)
    return _available_counts(rest, shares, size).numpy()


def _available_counts(
    left: Int[Tensor, " classes"], shares: Float[Tensor, " classes"], size: int
) -> Int[Tensor, " classes"]:
    """Return counts by these shares, but no more than are left; `size` in all."""
    count = torch.zeros_like(left)
    while missing := size - int(count.sum()):
        room = left - count
        weights = torch.where(room > 0, shares, 0.0)
        if not float(weights.sum()) > 0:
            weights = room.double()
        count = count + apportion(weights, missing).minimum(room)
    return count
