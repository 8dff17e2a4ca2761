"""The rank of a candidate when ties are broken at random."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, slots=True)
class TiedRank:
    """The rank of a candidate, which is random among tied candidates.

    Args:
        better: number of candidates with a better score.
        tied: number of candidates with the same score, including itself.

    """

    better: int
    tied: int

    def probability_within(self, length: int) -> float:
        """Return the probability that it is among the first `length` candidates."""
        return min(1.0, max(0.0, (length - self.better) / self.tied))

    def reciprocal_rank(self) -> float:
        """Return the expected value of 1 / rank over all orders of the ties."""
        ranks = range(self.better + 1, self.better + self.tied + 1)
        return sum(1 / rank for rank in ranks) / self.tied


def rank_candidate(scores: Float[Tensor, " candidates"], candidate: int) -> TiedRank:
    """Rank the candidate with this index; larger scores come first."""
    score = scores[candidate]
    return TiedRank(int((scores > score).sum()), int((scores == score).sum()))
