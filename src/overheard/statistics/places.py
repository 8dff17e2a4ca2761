"""Where the right candidate stands in a ranking whose ties are broken by chance."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Place:
    """Where a candidate stands.

    Args:
        better: how many stand before it for certain.
        tied: how many share its places, itself among them.

    """

    better: int
    tied: int

    def within(self, length: int) -> float:
        """The chance that it is among the first so many."""
        return min(1.0, max(0.0, (length - self.better) / self.tied))

    def reciprocal_rank(self) -> float:
        """What 1 / rank is on average over all orders of the ties."""
        ranks = range(self.better + 1, self.better + self.tied + 1)
        return sum(1 / rank for rank in ranks) / self.tied


def place(scores: Float[Tensor, " candidates"], candidate: int) -> Place:
    """Where the candidate with this number stands; larger scores come first."""
    own = scores[candidate]
    return Place(int((scores > own).sum()), int((scores == own).sum()))
