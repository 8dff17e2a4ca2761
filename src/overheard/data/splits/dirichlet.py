"""Each client has label shares of its own, drawn from a Dirichlet distribution."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Rows, Split
from overheard.data.apportion import apportion
from overheard.data.partition.check_pool import check_pool
from overheard.data.partition.draw import draw

ATTEMPTS = 100
"""Draws a client gets to find shares that the pool can still serve."""


@final
@dataclass(frozen=True, slots=True)
class Dirichlet(Split):
    """Client k holds the labels in shares p_k ~ Dirichlet(alpha, ..., alpha).

    Shares become counts by largest remainders. Clients are served in order: where the pool
    has too little left for the shares drawn, they are drawn anew and, after a hundred draws,
    what is missing of one label is made up by the client's other labels, then by any. So the
    shares are Dirichlet's while the pool is ample; in a pool almost used up, the last clients
    take what is left and are nearer to each other than alpha says.

    Args:
        alpha: 0.1 = one or two labels a client, 1 = all shares equally likely, 100 = alike.

    """

    alpha: float = 0.5

    name: ClassVar[str] = "dirichlet"
    source: ClassVar[str] = (
        "Hsu, Qi, Brown 2019 (arXiv:1909.06335), section 3; Ma et al., Whispers of Data "
        "(alpha 0.5, 1, 2)"
    )

    def __post_init__(self) -> None:
        """Refuse an alpha that gives no distribution."""
        if not 0 < self.alpha < float("inf"):
            raise PlanError(f"dirichlet: alpha must be above 0, got {self.alpha}")

    def assign(
        self,
        labels: Int[Tensor, " examples"],
        users: Int[Tensor, " examples"] | None,
        sizes: Int[Tensor, " clients"],
        classes: int,
        seed: Seed,
    ) -> tuple[Rows, ...]:
        """Draw the shares client by client, then the examples."""
        check_pool(labels, sizes, classes)
        left = labels.bincount(minlength=classes)
        counts = []
        for number, size in enumerate(sizes.tolist()):
            generator = seed.child("shares", number).numpy()
            for _ in range(ATTEMPTS):
                shares = torch.from_numpy(generator.dirichlet([self.alpha] * classes))
                count = apportion(shares, size)
                if bool((count <= left).all()):
                    break
            else:
                count = _within(left, shares, size)
            left = left - count
            counts.append(count)
        return draw(labels, torch.stack(counts), classes, seed.child("rows"))


def _within(
    left: Int[Tensor, " classes"], shares: Float[Tensor, " classes"], size: int
) -> Int[Tensor, " classes"]:
    """Counts after these shares, but never more than is left; `size` in all."""
    count = torch.zeros_like(left)
    while missing := size - int(count.sum()):
        room = left - count
        wanted = torch.where(room > 0, shares, 0.0)
        if not float(wanted.sum()) > 0:
            wanted = room.double()
        count = count + apportion(wanted, missing).minimum(room)
    return count
